//! A reader of server-sent events.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::PATIENCE;
use crate::service::Service;

pub struct Reader {
    stream: TcpStream,
    read: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub id: String,
    pub name: String,
    pub data: String,
}

impl Event {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

impl Reader {
    /// Listens at `/rooms/{path}`, with header lines.
    pub async fn open(service: &Service, path: &str, headers: &str) -> Self {
        Self::open_at(service, &format!("/rooms/{path}"), headers).await
    }

    /// Listens anywhere.
    pub async fn open_at(service: &Service, path: &str, headers: &str) -> Self {
        let mut stream = TcpStream::connect(&service.public).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: headcount\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reader = Self { stream, read: String::new() };
        let head = reader.until("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("content-type: text/event-stream"), "{head}");
        reader
    }

    async fn until(&mut self, end: &str) -> String {
        loop {
            if let Some((before, after)) = self.read.split_once(end) {
                let (before, after) = (before.to_owned(), after.to_owned());
                self.read = after;
                return before;
            }
            let mut bytes = [0; 4096];
            let read =
                tokio::time::timeout(PATIENCE, self.stream.read(&mut bytes)).await.expect("nothing came");
            let read = read.unwrap();
            assert!(read > 0, "the stream ended: {}", self.read);
            self.read += std::str::from_utf8(&bytes[..read]).unwrap();
        }
    }

    /// The next event; the lengths of chunks, comments and the retry hint are skipped, and prolong nobody's patience.
    pub async fn event(&mut self) -> Event {
        tokio::time::timeout(PATIENCE, self.next_event()).await.expect("no event came")
    }

    async fn next_event(&mut self) -> Event {
        loop {
            let lines = self.until("\n\n").await;
            let field = |name: &str| {
                let of = lines.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                of.collect::<Vec<_>>().join("\n")
            };
            let event = Event { id: field("id"), name: field("event"), data: field("data") };
            if !event.name.is_empty() {
                return event;
            }
        }
    }

    /// The next event of a name.
    pub async fn event_of(&mut self, name: &str) -> Event {
        loop {
            let event = self.event().await;
            if event.name == name {
                return event;
            }
        }
    }

    /// The next block, a comment or a hint too, with the lengths of chunks in between.
    pub async fn block(&mut self) -> String {
        self.until("\n\n").await
    }

    /// Reads no further than a text, and goes away.
    pub async fn breaks_off_at(mut self, text: &str) {
        let mut byte = [0];
        while !self.read.contains(text) {
            let read =
                tokio::time::timeout(PATIENCE, self.stream.read(&mut byte)).await.expect("nothing came");
            assert!(read.unwrap() > 0, "the stream ended: {}", self.read);
            self.read.push(byte[0].into());
        }
    }

    /// Reads on to the end of the connection.
    pub async fn ends(mut self) {
        let mut rest = Vec::new();
        tokio::time::timeout(PATIENCE, self.stream.read_to_end(&mut rest))
            .await
            .expect("no end came")
            .unwrap();
    }

    /// The reader goes away.
    pub fn ended_early(self) {
        drop(self);
    }
}

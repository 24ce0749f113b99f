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
        let mut stream = TcpStream::connect(&service.public).await.unwrap();
        let request = format!("GET /rooms/{path} HTTP/1.1\r\nhost: headcount\r\n{headers}\r\n");
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

    /// The reader goes away.
    pub fn ended_early(self) {
        drop(self);
    }
}

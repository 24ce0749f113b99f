//! Likes in bulk: a line in, a line out, in order, and what breaks on the way costs nothing that was answered.

mod breaks;
mod contract;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use crate::client::Client;
use crate::service::Service;

/// One request whose body is still being written while its answer is read.
pub struct Stream {
    pub lines_in: LinesIn,
    pub outcomes: Outcomes,
}

/// The request's side.
pub struct LinesIn(OwnedWriteHalf);

/// The answer's side.
pub struct Outcomes {
    reader: BufReader<OwnedReadHalf>,
    /// Of the chunk that was read last.
    text: Vec<u8>,
}

impl Stream {
    pub async fn open(service: &Service) -> Self {
        let stream = TcpStream::connect(&service.public).await.unwrap();
        let (reader, mut writer) = stream.into_split();
        let head = "POST /batch/likes HTTP/1.1\r\nhost: headcount\r\ntransfer-encoding: chunked\r\n\r\n";
        writer.write_all(head.as_bytes()).await.unwrap();
        let outcomes = Outcomes { reader: BufReader::new(reader), text: Vec::new() };
        Self { lines_in: LinesIn(writer), outcomes }
    }

    /// Sends a line and waits for its outcome.
    pub async fn ask(&mut self, line: &str) -> Value {
        self.lines_in.send(&format!("{line}\n")).await.unwrap();
        self.outcomes.next().await.unwrap()
    }
}

impl LinesIn {
    /// Any text: a line, many, a part of one.
    pub async fn send(&mut self, text: &str) -> std::io::Result<()> {
        self.0.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).await
    }

    /// There are no more.
    pub async fn end(&mut self) -> std::io::Result<()> {
        self.0.write_all(b"0\r\n\r\n").await
    }
}

impl Outcomes {
    /// The next outcome; `None` at the end, or where the connection broke.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.text.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let mut line = String::new();
            if self.reader.read_line(&mut line).await.unwrap_or(0) == 0 {
                return None;
            }
            if line.starts_with("HTTP/1.1 ") {
                assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
                while line != "\r\n" {
                    line.clear();
                    self.reader.read_line(&mut line).await.ok()?;
                }
                continue;
            }
            let length = usize::from_str_radix(line.trim(), 16).unwrap();
            let mut chunk = vec![0; length + 2];
            self.reader.read_exact(&mut chunk).await.ok()?;
            if length == 0 {
                return None;
            }
            self.text.extend_from_slice(&chunk[..length]);
        }
    }

    /// All that come until the end.
    pub async fn rest(&mut self) -> Vec<Value> {
        let mut rest = Vec::new();
        while let Some(outcome) = self.next().await {
            rest.push(outcome);
        }
        rest
    }
}

/// Sends lines as one whole body; their outcomes.
pub async fn send(client: &Client, lines: &[impl AsRef<str>]) -> Vec<Value> {
    let lines: Vec<&str> = lines.iter().map(AsRef::as_ref).collect();
    let answer = client.post("/batch/likes", lines.join("\n")).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "application/x-ndjson"), "{answer:?}");
    answer.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

pub fn like(item: &str, user: &str) -> String {
    format!(r#"{{"item":"{item}","user":"{user}","liked":true}}"#)
}

pub fn unlike(item: &str, user: &str) -> String {
    format!(r#"{{"item":"{item}","user":"{user}","liked":false}}"#)
}

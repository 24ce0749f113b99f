//! HTTP byte by byte, for requests that a decent client refuses to send.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::client::Answer;

/// How long an answer may take before the test gives up on it.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends one request on a connection of its own. Path and body go as they are.
pub fn send(address: &str, method: &str, path: impl AsRef<[u8]>, body: impl AsRef<[u8]>) -> Answer {
    let body = body.as_ref();
    let length = format!("content-length: {}\r\n\r\n", body.len());
    let rest = b" HTTP/1.1\r\nhost: headcount\r\nconnection: close\r\n";
    exchange(address, &[method.as_bytes(), b" ", path.as_ref(), rest, length.as_bytes(), body].concat())
}

/// Sends bytes and reads what comes until the connection closes.
pub fn exchange(address: &str, request: &[u8]) -> Answer {
    let mut stream = connect(address);
    // A server that has heard enough closes; its answer is on the way all the same.
    let _heard_enough = stream.write_all(request);
    read(&mut stream).expect("the connection closed without an answer")
}

/// The answer, once the connection closes; `None` if it closes without one.
pub fn read(stream: &mut TcpStream) -> Option<Answer> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("the connection stays open: {error}"),
    }
    if bytes.is_empty() {
        return None;
    }
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let (status, headers) = head.split_once("\r\n").unwrap_or((head, ""));
    let header = |line: &str| {
        let (name, value) = line.split_once(": ").unwrap();
        (name.parse::<hyper::header::HeaderName>().unwrap(), value.parse().unwrap())
    };
    Some(Answer {
        status: status.split(' ').nth(1).unwrap().parse().unwrap(),
        headers: headers.lines().map(header).collect(),
        text: body.to_owned(),
        json: serde_json::from_str(body).unwrap_or_default(),
    })
}

//! A small blocking client for what is asked beside the load: readiness, totals, statuses.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::Failure;
use crate::response::Head;

/// An exact total waits for every shard, behind whatever the run has left to write.
const TIMEOUT: Duration = Duration::from_secs(10);

/// One keep-alive connection.
pub struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Result<Self, Failure> {
        let stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(Self { stream, buffer: vec![0; 64 * 1024] })
    }

    /// Sends `line` (`GET /ready`) without a body. Returns the status and the body.
    pub fn send(&mut self, line: &str) -> Result<(u16, &[u8]), Failure> {
        self.exchange(format!("{line} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\n\r\n").as_bytes())
    }

    /// Sends a request as it is. Returns the status and the body of its answer.
    pub fn exchange(&mut self, request: &[u8]) -> Result<(u16, &[u8]), Failure> {
        self.stream.write_all(request)?;
        let mut filled = 0;
        loop {
            let read = self.stream.read(&mut self.buffer[filled..])?;
            if read == 0 {
                return Err(Box::new(std::io::Error::from(ErrorKind::UnexpectedEof)));
            }
            filled += read;
            match Head::parse(&self.buffer[..filled])? {
                Some(head) if filled >= head.end() => {
                    return Ok((head.status, &self.buffer[head.body_at..head.end()]));
                }
                _ => {}
            }
        }
    }

    /// Sends `line`, whose answer must be a 200 with a JSON body.
    pub fn json(&mut self, line: &str) -> Result<Value, Failure> {
        match self.send(line)? {
            (200, body) => Ok(serde_json::from_slice(body)?),
            (status, body) => {
                Err(format!("{line} answered {status}: {}", String::from_utf8_lossy(body)).into())
            }
        }
    }

    /// The sum of the series of `/metrics` whose lines start with `prefix`, 0 if there is none.
    pub fn metric(&mut self, prefix: &str) -> Result<f64, Failure> {
        let (_, text) = self.send("GET /metrics")?;
        let text = String::from_utf8_lossy(text);
        Ok(text
            .lines()
            .filter(|line| line.starts_with(prefix))
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
            .sum())
    }
}

/// The whole number in the field `name` of a JSON object.
pub fn count(object: &Value, name: &str) -> Result<u64, Failure> {
    object[name].as_u64().ok_or_else(|| format!("no count `{name}` in {object}").into())
}

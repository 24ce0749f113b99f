//! A connection that sends lines as one long body and reads an outcome for each, a bounded number of them in flight.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::time::Instant;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;

use crate::generator::Lane;
use crate::request::Request;
use crate::response::bad;

/// Connections of a side that streams.
pub const STREAMS: usize = 8;
/// Lines of one of them that are sent and not answered.
const IN_FLIGHT: usize = 512;
/// Lines that share a write.
const RUN: usize = 64;
const HEAD: &[u8] = b"POST /batch/likes HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n";
const READ_BYTES: usize = 64 * 1024;

/// What was sent and is not answered: when, and for which item.
#[derive(Default)]
struct InFlight {
    sent: RefCell<VecDeque<(Instant, usize)>>,
    fewer: Notify,
}

pub async fn connection(stream: TcpStream, line: Request, lane: Rc<Lane>) -> io::Result<()> {
    // The half that writes lives as long as the other: where it goes, the connection is closed.
    let (reader, mut writer) = stream.into_split();
    let in_flight = InFlight::default();
    let writing = write(&mut writer, line, &lane, &in_flight);
    let reading = read(reader, &lane, &in_flight);
    let ((), ()) = tokio::try_join!(writing, reading)?;
    Ok(())
}

async fn write(
    writer: &mut OwnedWriteHalf,
    mut line: Request,
    lane: &Lane,
    in_flight: &InFlight,
) -> io::Result<()> {
    writer.write_all(HEAD).await?;
    let mut lines = Vec::new();
    loop {
        while in_flight.sent.borrow().len() + RUN > IN_FLIGHT {
            in_flight.fewer.notified().await;
        }
        let now = Instant::now();
        lines.clear();
        for _ in 0..RUN {
            let Some(number) = lane.next_number(now) else { break };
            let item = line.number(number);
            lines.extend_from_slice(line.bytes());
            in_flight.sent.borrow_mut().push_back((now, item));
        }
        if lines.is_empty() {
            return writer.write_all(b"0\r\n\r\n").await;
        }
        let chunk = [format!("{:x}\r\n", lines.len()).as_bytes(), &lines, b"\r\n"].concat();
        writer.write_all(&chunk).await?;
    }
}

async fn read(mut reader: OwnedReadHalf, lane: &Lane, in_flight: &InFlight) -> io::Result<()> {
    let mut answer = Chunks::default();
    let mut buffer = vec![0; READ_BYTES];
    while !answer.ended {
        let read = reader.read(&mut buffer).await?;
        if read == 0 {
            return Err(bad("a stream closed before its end"));
        }
        answer.take(&buffer[..read])?;
        let now = Instant::now();
        let mut at = 0;
        while let Some(length) = answer.text[at..].iter().position(|&byte| byte == b'\n') {
            let line = &answer.text[at..at + length];
            at += length + 1;
            let sent = in_flight.sent.borrow_mut().pop_front();
            let (sent, item) = sent.ok_or_else(|| bad("more outcomes than lines"))?;
            lane.record(sent, now, Some(item), status(line)?, line);
        }
        answer.text.drain(..at);
        in_flight.fewer.notify_one();
    }
    match in_flight.sent.borrow().is_empty() {
        true => Ok(()),
        false => Err(bad("fewer outcomes than lines")),
    }
}

fn status(line: &[u8]) -> io::Result<u16> {
    const NAME: &[u8] = b"\"status\":";
    let at = line.windows(NAME.len()).position(|window| window == NAME);
    let digits = at.and_then(|at| line.get(at + NAME.len()..at + NAME.len() + 3));
    let number = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    number.ok_or_else(|| bad("an outcome without a status"))
}

/// Just enough of the chunked coding to read an answer.
#[derive(Default)]
struct Chunks {
    /// Read and not decoded: at most a head, or the beginning of a chunk's length.
    raw: Vec<u8>,
    in_body: bool,
    /// Bytes of the chunk that are still to come, its line end too.
    left: usize,
    text: Vec<u8>,
    ended: bool,
}

impl Chunks {
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.raw.extend_from_slice(bytes);
        let mut at = 0;
        if !self.in_body {
            let Some(end) = self.raw.windows(4).position(|window| window == b"\r\n\r\n") else {
                return Ok(());
            };
            if !self.raw.starts_with(b"HTTP/1.1 200") {
                return Err(bad("a stream was refused"));
            }
            at = end + 4;
            self.in_body = true;
        }
        while at < self.raw.len() && !self.ended {
            if self.left > 0 {
                let now = self.left.min(self.raw.len() - at);
                // The line end after the chunk is no text.
                let text = now.min(self.left.saturating_sub(2));
                self.text.extend_from_slice(&self.raw[at..at + text]);
                self.left -= now;
                at += now;
                continue;
            }
            let Some(end) = self.raw[at..].iter().position(|&byte| byte == b'\n') else { break };
            let digits = std::str::from_utf8(&self.raw[at..at + end]).unwrap_or_default().trim();
            let length = usize::from_str_radix(digits, 16).map_err(|_| bad("no chunk's length"))?;
            at += end + 1;
            self.ended = length == 0;
            self.left = length + 2;
        }
        self.raw.drain(..at);
        Ok(())
    }
}

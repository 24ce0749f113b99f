//! Very many readers of one item's live total.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::FIRST_NUMBER;
use crate::Failure;
use crate::child::{self, Process};
use crate::client::{self, Client};

const WATCHERS: usize = 10_000;
const PATIENCE: Duration = Duration::from_secs(20);
const ENCODED: &str = "headcount_likes_events_encoded_total";

/// Opens the streams, likes the item once, and waits until every stream has told it.
pub fn measure(process: &Process, items: u64) -> Result<(), Failure> {
    rlimit::increase_nofile_limit(u64::MAX)?;
    child::settle(std::slice::from_ref(process))?;
    let item = format!("i{:07}", items / 2);
    let before = process.resident_bytes()?;
    let mut streams = Vec::with_capacity(WATCHERS);
    for _ in 0..WATCHERS {
        let mut stream = TcpStream::connect(process.address)?;
        write!(stream, "GET /likes/{item}/events HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")?;
        stream.set_read_timeout(Some(PATIENCE))?;
        streams.push(stream);
    }
    let mut texts = vec![Vec::new(); WATCHERS];
    for (stream, text) in streams.iter_mut().zip(&mut texts) {
        read_until(stream, text, b"\"total\":")?;
        text.clear();
    }
    child::settle(std::slice::from_ref(process))?;
    let each = (process.resident_bytes()?.saturating_sub(before)) as f64 / WATCHERS as f64 / 1024.0;

    let encoded = || Client::connect(process.admin)?.metric(ENCODED);
    let (cpu, computed) = (process.cpu_seconds()?, encoded()?);
    let like = format!("PUT /likes/{item}/users/{:016x}?exact=true", FIRST_NUMBER);
    let total = client::count(&Client::connect(process.address)?.json(&like)?, "total")?;
    let told = format!("\"total\":{total},");
    let mut first = None;
    for (stream, text) in streams.iter_mut().zip(&mut texts) {
        read_until(stream, text, told.as_bytes())?;
        first.get_or_insert_with(Instant::now);
    }
    let within = first.map_or(Duration::ZERO, |first| first.elapsed());
    println!(
        "\n{WATCHERS} readers of one live total: {each:.2} KiB each; a change reached all within {:.0} ms of the first, encoded \
         {:.0} time(s), {:.0} ms of the service's CPU",
        within.as_secs_f64() * 1e3,
        encoded()? - computed,
        (process.cpu_seconds()? - cpu) * 1e3
    );
    Ok(())
}

fn read_until(stream: &mut TcpStream, text: &mut Vec<u8>, wanted: &[u8]) -> Result<(), Failure> {
    let mut chunk = [0; 4096];
    while !text.windows(wanted.len()).any(|window| window == wanted) {
        match stream.read(&mut chunk)? {
            0 => return Err(Box::new(std::io::Error::from(ErrorKind::UnexpectedEof))),
            read => text.extend_from_slice(&chunk[..read]),
        }
    }
    Ok(())
}

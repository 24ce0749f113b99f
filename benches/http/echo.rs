//! A responder that does next to nothing: what the generator reaches against it is the generator's own ceiling.

use std::io::{ErrorKind, Read, Result, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 79\r\n\r\n\
{\"item\":\"hot\",\"user\":\"u0000000000000000\",\"liked\":true,\"changed\":true,\"shard\":0}";

/// Answers whatever arrives on `port`, until the process ends: one tight loop over nonblocking sockets, which on a core
/// of its own answers a quarter more than an epoll loop does. It takes each read for one whole request, which holds for
/// requests of one segment without pipelining.
pub fn serve(port: u16) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    listener.set_nonblocking(true)?;
    let mut streams: Vec<TcpStream> = Vec::new();
    loop {
        accept_waiting(&listener, &mut streams)?;
        if streams.is_empty() {
            // Other sides are being measured meanwhile: keep off their cores.
            thread::sleep(Duration::from_millis(5));
        }
        for _ in 0..64 {
            let mut answered = false;
            streams.retain_mut(|stream| answer(stream, &mut answered).is_ok());
            if !answered {
                // Where another process wants this core, it may be the one that would send the next request.
                thread::yield_now();
            }
        }
    }
}

fn accept_waiting(listener: &TcpListener, streams: &mut Vec<TcpStream>) -> Result<()> {
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                streams.push(stream);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Answers a request if one is there. An error when the connection is closed.
fn answer(stream: &mut TcpStream, answered: &mut bool) -> Result<()> {
    let mut request = [0; 1024];
    match stream.read(&mut request) {
        Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
        Ok(_) => {
            *answered = true;
            stream.write_all(ANSWER)
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error),
    }
}

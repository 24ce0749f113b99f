//! The load: sockets that read as fast as they can, and one of each room that speaks when it has heard itself.
//!
//! Frames are read by their known length, so that the readers cost as little as can be: they share the machine
//! with the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Failure;
use crate::servers::Server;

#[derive(Debug, Clone, Copy)]
pub struct Shape {
    pub rooms: usize,
    /// In each room, the speaker among them.
    pub sockets: usize,
}

#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    pub per_second: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub per_cpu_second: f64,
}

const MESSAGE_BYTES: usize = 100;
/// With the header of a server's frame.
const FRAME_BYTES: usize = MESSAGE_BYTES + 2;
/// Digits of the time at which a message was sent, in ns since the start.
const TIME_DIGITS: usize = 16;
/// Latencies are counted in steps of 0.1 ms, up to 10 s.
const STEPS: usize = 100_000;
/// How long the last messages may take to arrive.
const PATIENCE: Duration = Duration::from_secs(60);

struct Shared {
    started: Instant,
    speaking: AtomicBool,
    sent: AtomicU64,
    delivered: AtomicU64,
    /// When the last delivery was, ns since the start.
    last_ns: AtomicU64,
    latencies: Vec<AtomicU64>,
}

pub async fn run(
    server: &Server,
    shape: Shape,
    window: usize,
    seconds: Duration,
) -> Result<Outcome, Failure> {
    let shared = Arc::new(Shared {
        started: Instant::now(),
        speaking: AtomicBool::new(true),
        sent: AtomicU64::new(0),
        delivered: AtomicU64::new(0),
        last_ns: AtomicU64::new(0),
        latencies: (0..STEPS).map(|_| AtomicU64::new(0)).collect(),
    });
    let mut speakers = Vec::new();
    for room in 0..shape.rooms {
        for socket in 0..shape.sockets {
            let stream = open(server, room).await?;
            match socket {
                0 => speakers.push(stream),
                _ => drop(tokio::spawn(listen(stream, Arc::clone(&shared), 0))),
            }
        }
    }
    // Whoever was let in last has to be in the room before somebody speaks.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let cpu_before = server.cpu_seconds()?;
    let began = shared.now_ns();
    for mut speaker in speakers {
        for _ in 0..window {
            speaker.write_all(&shared.message()).await?;
        }
        tokio::spawn(listen(speaker, Arc::clone(&shared), window));
    }
    tokio::time::sleep(seconds).await;
    shared.speaking.store(false, Ordering::SeqCst);
    let stopped = Instant::now();
    while shared.delivered.load(Ordering::SeqCst) < shared.sent.load(Ordering::SeqCst) * shape.sockets as u64
    {
        if stopped.elapsed() > PATIENCE {
            let expected = shared.sent.load(Ordering::SeqCst) * shape.sockets as u64;
            let delivered = shared.delivered.load(Ordering::SeqCst);
            return Err(
                format!("{}: {delivered} of {expected} messages were delivered", server.name()).into()
            );
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let took = Duration::from_nanos(shared.last_ns.load(Ordering::SeqCst) - began).as_secs_f64();
    let delivered = shared.delivered.load(Ordering::SeqCst) as f64;
    Ok(Outcome {
        per_second: delivered / took,
        p50_ms: shared.quantile_ms(0.5),
        p99_ms: shared.quantile_ms(0.99),
        per_cpu_second: delivered / (server.cpu_seconds()? - cpu_before),
    })
}

async fn open(server: &Server, room: usize) -> Result<TcpStream, Failure> {
    let mut stream = TcpStream::connect(server.address).await?;
    stream.set_nodelay(true)?;
    let request = format!(
        "GET /rooms/room-{room}/socket?raw=true HTTP/1.1\r\nhost: bench\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    if !head.starts_with(b"HTTP/1.1 101") {
        return Err(String::from_utf8_lossy(&head).into_owned().into());
    }
    Ok(stream)
}

/// Reads; says something for each message heard, where `window` is not 0.
async fn listen(mut stream: TcpStream, shared: Arc<Shared>, window: usize) {
    let mut buffer = vec![0; 8 * 1024];
    let mut filled = 0;
    while let Ok(read @ 1..) = stream.read(&mut buffer[filled..]).await {
        filled += read;
        let now_ns = shared.now_ns();
        let frames = buffer[..filled].chunks_exact(FRAME_BYTES);
        let count = frames.len();
        for frame in frames {
            assert_eq!(frame[..2], [0x81, MESSAGE_BYTES as u8], "a frame of another shape");
            let digits = std::str::from_utf8(&frame[2..2 + TIME_DIGITS]).unwrap_or_default();
            shared.record(now_ns.saturating_sub(digits.parse().unwrap_or_default()));
        }
        buffer.copy_within(count * FRAME_BYTES..filled, 0);
        filled -= count * FRAME_BYTES;
        shared.last_ns.fetch_max(now_ns, Ordering::Relaxed);
        if window > 0 && shared.speaking.load(Ordering::SeqCst) {
            let messages: Vec<u8> = (0..count).flat_map(|_| shared.message()).collect();
            if stream.write_all(&messages).await.is_err() {
                return;
            }
        }
        shared.delivered.fetch_add(count as u64, Ordering::SeqCst);
    }
}

impl Shared {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// A masked text frame (the mask is zero) that tells when it was made.
    fn message(&self) -> Vec<u8> {
        self.sent.fetch_add(1, Ordering::SeqCst);
        let mut frame = vec![0x81, 0x80 | MESSAGE_BYTES as u8, 0, 0, 0, 0];
        frame.extend(format!("{:016}", self.now_ns()).bytes());
        frame.resize(6 + MESSAGE_BYTES, b'x');
        frame
    }

    fn record(&self, ns: u64) {
        let step = usize::try_from(ns / 100_000).unwrap_or(usize::MAX).min(STEPS - 1);
        self.latencies[step].fetch_add(1, Ordering::Relaxed);
    }

    fn quantile_ms(&self, quantile: f64) -> f64 {
        let all: u64 = self.latencies.iter().map(|count| count.load(Ordering::SeqCst)).sum();
        let mut seen = 0;
        for (step, count) in self.latencies.iter().enumerate() {
            seen += count.load(Ordering::SeqCst);
            if seen as f64 >= all as f64 * quantile {
                return (step + 1) as f64 / 10.0;
            }
        }
        f64::INFINITY
    }
}

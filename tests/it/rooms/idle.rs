//! What an idle socket costs, all told: fifteen thousand of them in one room, and over five thousand rooms.
//!
//! The process's resident memory is read before and after; the kernel's buffers are not in it. A debug
//! build's futures are larger than a release's, so the bound holds for a release a fortiori.

use std::fmt::Write;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{PATIENCE, metric};
use crate::service::{Service, Setup};

const SOCKETS: u64 = 15_000;
const MOST_BYTES: u64 = 5 * 1024;

/// Resident bytes of the service.
fn resident(service: &Service) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// A connection after its handshake, without a client's own memory for frames.
async fn open(address: String, path: String) -> TcpStream {
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let mut request = String::new();
    write!(request, "GET /rooms/{path} HTTP/1.1\r\nhost: headcount\r\nconnection: upgrade\r\n").unwrap();
    request += "upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    tokio::time::timeout(PATIENCE, stream.read_exact(&mut head)).await.unwrap().unwrap();
    assert_eq!(&head, b"HTTP/1.1 101");
    stream
}

/// So many sockets over so many rooms, everyone a member of its own; bytes that each costs.
async fn cost(rooms: u64) -> u64 {
    rlimit::increase_nofile_limit(u64::MAX).unwrap();
    let service = Setup::new()
        .with("server.max_connections", 1_000_000)
        .with("rooms.admissions_per_s", 1_000_000)
        .with("rooms.sleep_after_ms", 200)
        .start();
    // What a first connection makes once and for all is not a socket's.
    drop(open(service.public.clone(), "warm/socket?user=warm&presence=false".to_owned()).await);
    let before = resident(&service);
    let mut sockets = Vec::new();
    for number in 0..SOCKETS {
        let path = format!("room-{}/socket?user=user-{number}&presence=false", number % rooms);
        sockets.push(open(service.public.clone(), path).await);
    }
    let connections = "headcount_room_connections{kind=\"websocket\"}";
    while metric(&service, connections).await != SOCKETS as f64
        || metric(&service, "headcount_rooms{state=\"awake\"}").await != 0.0
    {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let each = (resident(&service) - before) / SOCKETS;
    println!("{SOCKETS} idle sockets over {rooms} rooms: {each} bytes each");
    // They are alive.
    for socket in sockets.iter_mut().step_by(1_000) {
        socket.write_all(&[0x89, 0x80, 0, 0, 0, 0]).await.unwrap();
        let mut heard = [0; 512];
        loop {
            let read = tokio::time::timeout(PATIENCE, socket.read(&mut heard)).await.unwrap().unwrap();
            assert!(read > 0);
            if heard[..read].ends_with(&[0x8a, 0]) {
                break;
            }
        }
    }
    each
}

/// What a large message needs while it comes in goes back when it has come.
#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_said_something_large_is_small_again() {
    const TALKERS: u64 = 2_000;
    rlimit::increase_nofile_limit(u64::MAX).unwrap();
    let service = Setup::new().with("rooms.admissions_per_s", 1_000_000).start();
    // Too large for what a member says about itself: its sender alone is told, and no history keeps it.
    let text = format!(r#"{{"type":"update","meta":"{}"}}"#, "x".repeat(16_000));
    let mut frame = vec![0x81, 0x80 | 126];
    frame.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
    frame.extend([0; 4]);
    frame.extend(text.bytes());
    let told = b"invalid_meta";
    let mut sockets = Vec::new();
    let mut before = 0;
    for number in 0..=TALKERS {
        let path = format!("room-{}/socket?user=user-{number}&presence=false", number % 10);
        let mut socket = open(service.public.clone(), path).await;
        socket.write_all(&frame).await.unwrap();
        let mut heard = Vec::new();
        while !heard.windows(told.len()).any(|some| some == told) {
            let mut some = [0; 512];
            let read = tokio::time::timeout(PATIENCE, socket.read(&mut some)).await.unwrap().unwrap();
            assert!(read > 0, "{}", String::from_utf8_lossy(&heard));
            heard.extend(&some[..read]);
        }
        sockets.push(socket);
        if number == 0 {
            before = resident(&service);
        }
    }
    let each = resident(&service).saturating_sub(before) / TALKERS;
    println!("{TALKERS} sockets that each said 16 KB: {each} bytes each");
    assert!(each <= MOST_BYTES, "{each} bytes each");
}

#[tokio::test(flavor = "multi_thread")]
async fn fifteen_thousand_idle_sockets_cost_at_most_five_kilobytes_each() {
    for rooms in [1, 5_000] {
        let each = cost(rooms).await;
        assert!(each <= MOST_BYTES, "{each} bytes each over {rooms} rooms");
    }
}

//! The ceiling: the WebSocket library and a loop. A room is a list of sinks; a message goes to each in turn.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, accept_hdr_async_with_config};

use crate::Failure;

type Room = Arc<Mutex<Vec<SplitSink<WebSocketStream<TcpStream>, Message>>>>;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Serves on `port` until the process ends.
pub fn serve(port: u16) -> Result<(), Failure> {
    rlimit::increase_nofile_limit(u64::MAX)?;
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let rooms: Arc<Mutex<HashMap<String, Room>>> = Arc::default();
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(connection(stream, Arc::clone(&rooms)));
        }
    })
}

async fn connection(stream: TcpStream, rooms: Arc<Mutex<HashMap<String, Room>>>) {
    let _best_effort = stream.set_nodelay(true);
    let mut path = String::new();
    #[expect(clippy::result_large_err, reason = "the library's own signature")]
    let look = |request: &Request, response: Response| {
        path = request.uri().path().to_owned();
        Ok(response)
    };
    let config = WebSocketConfig::default().read_buffer_size(1024).write_buffer_size(0);
    let Ok(socket) = accept_hdr_async_with_config(stream, look, Some(config)).await else { return };
    let (sink, mut source) = socket.split();
    let room = Arc::clone(rooms.lock().await.entry(path).or_default());
    room.lock().await.push(sink);
    while let Some(Ok(message)) = source.next().await {
        if message.is_text() {
            for sink in room.lock().await.iter_mut() {
                let _gone = sink.send(message.clone()).await;
            }
        }
    }
}

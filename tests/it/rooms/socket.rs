//! A WebSocket client.

use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::Error;
use tokio_tungstenite::tungstenite::{Bytes, Message};

use super::PATIENCE;
use crate::service::Service;

pub struct Socket(WebSocketStream<TcpStream>);

/// The code and the reason of a close.
pub type Goodbye = (u16, String);

impl Socket {
    /// Connects to `/rooms/{path}`.
    pub async fn open(service: &Service, path: &str) -> Self {
        Self::try_open(service, path).await.unwrap_or_else(|(status, body)| panic!("{path}: {status} {body}"))
    }

    /// The same; the status and the body of an answer that is no upgrade.
    pub async fn try_open(service: &Service, path: &str) -> Result<Self, (u16, String)> {
        Self::try_open_with(service, path, "").await
    }

    /// The same with an API key.
    pub async fn try_open_with(service: &Service, path: &str, key: &str) -> Result<Self, (u16, String)> {
        use tokio_tungstenite::tungstenite::client::IntoClientRequest;
        let stream = TcpStream::connect(&service.public).await.unwrap();
        let mut request = format!("ws://{}/rooms/{path}", service.public).into_client_request().unwrap();
        if !key.is_empty() {
            request.headers_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
        }
        let opening = tokio_tungstenite::client_async(request, stream);
        match tokio::time::timeout(PATIENCE, opening).await.unwrap() {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(Error::Http(answer)) => {
                let body = answer.body().clone().unwrap_or_default();
                Err((answer.status().as_u16(), String::from_utf8(body).unwrap()))
            }
            Err(error) => panic!("{path}: {error}"),
        }
    }

    pub async fn send(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.unwrap();
    }

    pub async fn send_any(&mut self, message: Message) {
        self.0.send(message).await.unwrap();
    }

    /// Pings, and waits for the answer.
    pub async fn ping(&mut self) {
        self.0.send(Message::Ping(Bytes::from_static(b"hi"))).await.unwrap();
        while !matches!(self.next_any().await, Message::Pong(_)) {}
    }

    pub async fn next_any(&mut self) -> Message {
        tokio::time::timeout(PATIENCE, self.0.next()).await.expect("nothing came").expect("the end").unwrap()
    }

    /// The next text. The service's pings prolong nobody's patience.
    pub async fn text(&mut self) -> String {
        let text = async {
            loop {
                match self.next_any().await {
                    Message::Text(text) => return text.as_str().to_owned(),
                    Message::Ping(_) | Message::Pong(_) => {}
                    other => panic!("{other:?}"),
                }
            }
        };
        tokio::time::timeout(PATIENCE, text).await.expect("no text came")
    }

    /// The next frame.
    pub async fn frame(&mut self) -> Value {
        serde_json::from_str(&self.text().await).unwrap()
    }

    /// The next frame of a type; others are skipped.
    pub async fn frame_of(&mut self, kind: &str) -> Value {
        loop {
            let frame = self.frame().await;
            if frame["type"] == kind {
                return frame;
            }
        }
    }

    /// Reads to the server's close.
    pub async fn goodbye(&mut self) -> Goodbye {
        let goodbye = async {
            loop {
                match self.0.next().await {
                    Some(Ok(Message::Close(Some(frame)))) => {
                        return (frame.code.into(), frame.reason.to_string());
                    }
                    Some(Ok(_)) => {}
                    end => panic!("no close frame: {end:?}"),
                }
            }
        };
        tokio::time::timeout(PATIENCE, goodbye).await.expect("it stays open")
    }

    /// Says goodbye and waits for the answer.
    pub async fn close(mut self) {
        self.0.close(None).await.unwrap();
        let answered = async { while let Some(Ok(_)) = self.0.next().await {} };
        tokio::time::timeout(PATIENCE, answered).await.unwrap();
    }

    /// The connection is cut.
    pub fn cut(self) {
        drop(self);
    }

    pub fn stream(&mut self) -> &mut TcpStream {
        self.0.get_mut()
    }
}

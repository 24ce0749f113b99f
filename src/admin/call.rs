//! One request to a service from its own command line.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody is there.
    #[error("nobody answers at {0}: {1}")]
    NoService(SocketAddr, std::io::Error),
    /// No HTTP, or it broke off.
    #[error("asking the service: {0}")]
    Http(#[from] hyper::Error),
}

/// What a service answered.
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Null if it is no JSON.
    pub body: Value,
}

impl Answer {
    /// The words of a problem; empty if it has none.
    pub fn detail(&self) -> &str {
        self.body.get("detail").and_then(Value::as_str).unwrap_or_default()
    }
}

/// Sends one request on a connection of its own, and waits for the whole answer.
///
/// # Errors
/// See [`Error`].
pub async fn call(address: SocketAddr, mut request: Request<Full<Bytes>>) -> Result<Answer, Error> {
    let stream = TcpStream::connect(address).await.map_err(|error| Error::NoService(address, error))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    if let Ok(host) = HeaderValue::from_str(&address.to_string()) {
        request.headers_mut().insert(HOST, host);
    }
    let answer = sender.send_request(request).await?;
    let status = answer.status();
    let bytes = answer.into_body().collect().await?.to_bytes();
    Ok(Answer { status, body: serde_json::from_slice(&bytes).unwrap_or_default() })
}

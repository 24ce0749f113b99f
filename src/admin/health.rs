//! Whether a service answers, asked from outside: for whoever restarts or leaves out what does not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use http_body_util::{BodyExt, Empty};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What is asked, and whom.
#[derive(Debug, Args)]
pub struct HealthOptions {
    /// The public API of the service [default: server.listen of the settings]
    #[arg(long, value_name = "ADDR")]
    pub address: Option<SocketAddr>,
    /// The settings file [default: config/headcount.toml if it exists]
    #[arg(long, conflicts_with = "address")]
    pub config: Option<PathBuf>,
    /// Ask whether every partition serves, too; one that does not mends itself without a restart
    #[arg(long)]
    pub ready: bool,
}

/// Why it is not healthy, as far as can be told.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No service.
    #[error("nobody answers at {0}: {1}")]
    NoService(SocketAddr, std::io::Error),
    /// A service that does not answer in time.
    #[error("no answer from {0} in {limit:?}", limit = LIMIT)]
    Late(SocketAddr),
    /// No HTTP, or it broke off.
    #[error("asking the service: {0}")]
    Http(#[from] hyper::Error),
    /// An answer other than 200.
    #[error("{0}: {1}")]
    Unwell(StatusCode, String),
}

/// Below the second or so that supervisors give a check.
const LIMIT: Duration = Duration::from_secs(2);

/// Asks, and waits for at most two seconds.
///
/// # Errors
/// See [`Error`].
pub async fn ask(address: SocketAddr, ready: bool) -> Result<(), Error> {
    let address = reachable(address);
    timeout(LIMIT, get(address, if ready { "/ready" } else { "/health" }))
        .await
        .map_err(|_| Error::Late(address))?
}

async fn get(address: SocketAddr, path: &'static str) -> Result<(), Error> {
    let stream = TcpStream::connect(address).await.map_err(|error| Error::NoService(address, error))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let mut request = Request::new(Empty::<Bytes>::new());
    *request.uri_mut() = hyper::Uri::from_static(path);
    if let Ok(host) = address.to_string().parse() {
        request.headers_mut().insert(hyper::header::HOST, host);
    }
    let answer = sender.send_request(request).await?;
    let status = answer.status();
    if status == StatusCode::OK {
        return Ok(());
    }
    let problem: Value =
        serde_json::from_slice(&answer.into_body().collect().await?.to_bytes()).unwrap_or_default();
    let detail = problem.get("detail").and_then(Value::as_str).unwrap_or_default();
    Err(Error::Unwell(status, detail.to_owned()))
}

/// Who listens on all addresses listens on loopback.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    address
}

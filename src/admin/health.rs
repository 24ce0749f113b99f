//! Whether a service answers, asked from outside: for whoever restarts or leaves out what does not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use http_body_util::Full;
use hyper::{Request, StatusCode, Uri};
use tokio::time::timeout;

use super::call::{self, call};
use crate::config::address;

/// What is asked, and whom.
#[derive(Debug, Args)]
pub struct HealthOptions {
    /// The public API of the service [default: server.listen of the settings]
    #[arg(long, value_name = "ADDR", value_parser = address)]
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
    /// No service, or no HTTP.
    #[error(transparent)]
    Call(#[from] call::Error),
    /// A service that does not answer in time.
    #[error("no answer from {0} in {limit:?}", limit = LIMIT)]
    Late(SocketAddr),
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
    let mut request = Request::new(Full::default());
    *request.uri_mut() = Uri::from_static(if ready { "/ready" } else { "/health" });
    let answer = timeout(LIMIT, call(address, request)).await.map_err(|_| Error::Late(address))??;
    if answer.status == StatusCode::OK {
        return Ok(());
    }
    Err(Error::Unwell(answer.status, answer.detail().to_owned()))
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

//! Accepts connections within their limits and ends them in order.
//!
//! hyper itself and not `axum::serve`: that one has no timeout for a head that never ends.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use metrics::Gauge;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::takeover::{Switching, Taken};
use super::write_timeout::WriteTimeout;
use crate::metrics::ConnectionMetrics;

/// Bounds of a listener.
#[derive(Debug, Clone)]
pub struct Bounds {
    /// Open connections.
    pub max_connections: usize,
    /// From the end of one request to the end of the next one's head.
    pub header_timeout: Duration,
    /// That an answer's bytes may wait to be taken.
    pub write_timeout: Duration,
    /// Told to connections beyond the bound.
    pub retry_after_s: u32,
}

/// Connections that are told at the same time that there are too many; more are just closed.
const MAX_APOLOGIES: usize = 256;
/// How long an apology waits for its connection to close.
const APOLOGY_TIMEOUT: Duration = Duration::from_secs(1);
/// Pause after a failed accept, so that a process out of file descriptors does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Serves until `stop`, then takes no more; `connections` tracks those that still finish a request.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    bounds: Bounds,
    metrics: ConnectionMetrics,
    stop: CancellationToken,
    connections: TaskTracker,
) {
    let places = Arc::new(Semaphore::new(bounds.max_connections));
    let apologies = Arc::new(Semaphore::new(MAX_APOLOGIES));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(bounds.header_timeout);
    loop {
        let stream = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    // Answers are small and whole; waiting to fill a packet would only add latency.
                    let _best_effort = stream.set_nodelay(true);
                    stream
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            },
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            metrics.refused.increment(1);
            if let Ok(permit) = Arc::clone(&apologies).try_acquire_owned() {
                let retry_after_s = bounds.retry_after_s;
                tokio::spawn(async move {
                    let _nobody_listens =
                        tokio::time::timeout(APOLOGY_TIMEOUT, apologize(stream, retry_after_s)).await;
                    drop(permit);
                });
            }
            continue;
        };
        let (http, router, stop, open) = (http.clone(), router.clone(), stop.clone(), metrics.open.clone());
        let stream = WriteTimeout::new(stream, bounds.write_timeout);
        let tracker = connections.clone();
        connections.spawn(async move {
            open.increment(1.0);
            let kept = Kept { open, _place: place };
            if let Some(takeover) = serve_connection(&http, stream, router, stop).await {
                // A task of its own: what HTTP needed is freed, and there may be many.
                tracker.spawn(async move {
                    takeover.await;
                    drop(kept);
                });
            }
        });
    }
}

/// What an open connection holds, whatever is spoken on it.
struct Kept {
    open: Gauge,
    _place: OwnedSemaphorePermit,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.open.decrement(1.0);
    }
}

/// Serves HTTP to its end; what comes after it, if the last answer switched protocols.
async fn serve_connection(
    http: &http1::Builder,
    stream: WriteTimeout,
    router: Router,
    stop: CancellationToken,
) -> Option<Taken> {
    let switch = Arc::new(Mutex::new(None));
    let service = Switching { inner: TowerToHyperService::new(router), switch: Arc::clone(&switch) };
    let mut connection = http.serve_connection(TokioIo::new(stream), service);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = stop.cancelled() => {
            Pin::new(&mut connection).graceful_shutdown();
            (&mut connection).await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
        return None;
    }
    let takeover = switch.lock().unwrap_or_else(PoisonError::into_inner).take()?;
    let parts = connection.into_parts();
    Some(takeover(parts.io.into_inner().into_inner(), parts.read_buf))
}

async fn apologize(mut stream: TcpStream, retry_after_s: u32) -> io::Result<()> {
    let body = r#"{"type":"urn:headcount:problem:overloaded","title":"Service Unavailable","status":503,"error":"overloaded","detail":"too many connections; surely not done, try again"}"#;
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
         retry-after: {retry_after_s}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    // Closing with unread bytes would reset the connection and may take the answer with it.
    let mut unread = [0; 1024];
    while stream.read(&mut unread).await? > 0 {}
    Ok(())
}

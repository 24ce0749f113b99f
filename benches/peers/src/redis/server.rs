//! A Redis of our own: its settings and its process.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use redis::Client;
use redis::aio::MultiplexedConnection;

use crate::Failure;
use crate::serve::{LOOK, Running, START_LIMIT, bound_to_us};

/// Everything that is not here is as it ships: one thread, the log rewritten when it has doubled.
const SETTINGS: [(&str, &str); 6] = [
    // No client comes over the network.
    ("port", "0"),
    ("appendonly", "yes"),
    // Synced before the answers of an event loop's turn go out.
    ("appendfsync", "always"),
    // Also while the log is rewritten.
    ("no-appendfsync-on-rewrite", "no"),
    // Snapshots besides the log would only cost.
    ("save", ""),
    ("daemonize", "no"),
];
const SOCKET: &str = "redis.sock";

/// A running server. Dropped, it stops.
pub struct Server {
    running: Running,
    socket: PathBuf,
}

impl Server {
    /// Starts a server with its data in `dir`.
    pub fn start(dir: &Path) -> Result<Self, Failure> {
        let dir = std::fs::canonicalize(dir)?;
        let socket = dir.join(SOCKET);
        let mut command = bound_to_us("redis-server", None);
        command.stdout(Stdio::null()).arg("--dir").arg(&dir).arg("--unixsocket").arg(&socket);
        for (name, value) in SETTINGS {
            command.arg(format!("--{name}")).arg(value);
        }
        Ok(Self { running: Running::start(command, "TERM")?, socket })
    }

    /// Another connection.
    pub async fn connect(&self) -> Result<MultiplexedConnection, Failure> {
        let client = Client::open(format!("unix://{}", self.socket.display()))?;
        Ok(client.get_multiplexed_async_connection().await?)
    }

    /// The first connection, as soon as the server gives one.
    pub async fn ready(&mut self) -> Result<MultiplexedConnection, Failure> {
        let since = Instant::now();
        loop {
            match self.connect().await {
                Ok(connection) => return Ok(connection),
                Err(error) if since.elapsed() > START_LIMIT => return Err(error),
                Err(_) => self.running.check()?,
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

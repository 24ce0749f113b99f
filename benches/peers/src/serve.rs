//! Serving, and the store's process beside it.

use std::net::SocketAddr;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use axum::Router;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::Failure;

/// A store opens its data well within this.
pub const START_LIMIT: Duration = Duration::from_secs(20);
/// How often a store that starts, or stops, is looked at.
pub const LOOK: Duration = Duration::from_millis(20);
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Serves on `address` until the process is told to stop. Requests under way are left where they are: nobody waits for them.
pub async fn until_stopped(address: SocketAddr, app: Router) -> Result<(), Failure> {
    let listener = TcpListener::bind(address).await?.tap_io(|stream| {
        // Fails only on a connection that is gone already.
        let _ = stream.set_nodelay(true);
    });
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::select! {
        served = async { axum::serve(listener, app).await } => Ok(served?),
        _ = terminated.recv() => Ok(()),
        pressed = tokio::signal::ctrl_c() => Ok(pressed?),
    }
}

/// `program`, to be run under another name or not, and ended by the kernel should this process end before it.
pub fn bound_to_us(program: &str, user: Option<&str>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "INT"]);
    if let Some(user) = user {
        command.args([&format!("--reuid={user}"), &format!("--regid={user}"), "--clear-groups"]);
    }
    command.arg(program);
    command
}

/// A store's server, stopped with its handle.
pub struct Running {
    child: Child,
    stop_signal: &'static str,
}

impl Running {
    /// Starts it; `stop_signal` is what it stops orderly at.
    pub fn start(mut command: Command, stop_signal: &'static str) -> Result<Self, Failure> {
        let child = command.spawn().map_err(|error| format!("{:?}: {error}", command.get_program()))?;
        Ok(Self { child, stop_signal })
    }

    /// An error if it has ended.
    pub fn check(&mut self) -> Result<(), Failure> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => Err(format!("the store ended ({status})").into()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let pid = self.child.id().to_string();
        let told = Command::new("kill").args(["-s", self.stop_signal, &pid]).status();
        let since = Instant::now();
        while told.is_ok() && since.elapsed() < STOP_LIMIT {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK);
        }
        // Both fail only when the process has ended already, and then there is nothing left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

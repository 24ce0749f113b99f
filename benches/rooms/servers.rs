//! The processes under load. Each is ended by its own id when its handle goes, whatever the reason.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Bare,
    Headcount,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Bare => "a bare loop",
            Self::Headcount => "headcount",
        }
    }
}

pub struct Server {
    kind: Kind,
    child: Child,
    pub address: SocketAddr,
    _data: TempDir,
}

impl Server {
    pub fn start(kind: Kind) -> Result<Self, Failure> {
        let data = tempfile::tempdir()?;
        let address = free_address()?;
        let mut command = match kind {
            Kind::Bare => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg("--bare").arg(address.port().to_string());
                command
            }
            Kind::Headcount => {
                let mut command = Command::new(headcount());
                command
                    .args(["serve", "--listen", &address.to_string()])
                    .args(["--admin-listen", &free_address()?.to_string()])
                    .arg("--data-dir")
                    .arg(data.path().join("data"))
                    // The load is the bench's to choose; everything else is as it ships.
                    .env("HEADCOUNT__SERVER__MAX_CONNECTIONS", "20000")
                    .env("HEADCOUNT__ROOMS__ADMISSIONS_PER_S", "1000000")
                    // The readers know one shape of frame.
                    .env("HEADCOUNT__ROOMS__PING_INTERVAL_MS", "0")
                    .env("HEADCOUNT__ROOMS__SOCKET_MESSAGES_PER_S", "1000000")
                    .env("HEADCOUNT__ROOMS__ROOM_MESSAGES_PER_S", "1000000")
                    .env("HEADCOUNT__ROOMS__USER_MESSAGES_PER_S", "1000000");
                command
            }
        };
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let server = Self { kind, child, address, _data: data };
        let started = Instant::now();
        while TcpStream::connect(address).is_err() {
            if started.elapsed() > Duration::from_secs(20) {
                return Err("a server was not ready in 20 s".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    pub fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// CPU seconds that the process has used.
    pub fn cpu_seconds(&self) -> Result<f64, Failure> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // Everything before the last parenthesis is the name, which may hold spaces.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks =
            |field: usize| fields.get(field).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0);
        // utime and stime, in hundredths.
        Ok((ticks(11) + ticks(12)) / 100.0)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only when the process has ended already, and then there is nothing left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `HEADCOUNT_BIN`, else what cargo built along with this bench.
fn headcount() -> PathBuf {
    let built = option_env!("CARGO_BIN_EXE_headcount").unwrap_or("target/release/headcount");
    std::env::var_os("HEADCOUNT_BIN").map_or_else(|| built.into(), PathBuf::from)
}

/// A free port. Somebody else could take it before the child does; then the child's start fails, and says so.
fn free_address() -> Result<SocketAddr, Failure> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

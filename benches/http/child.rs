//! The processes under load. Each is ended by its own id when its handle goes, whatever the reason.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Failure;
use crate::client::Client;
use crate::memory;
use crate::peers;
use crate::sides::Server;
use crate::tree;

/// A server opens its data and answers well within this.
const READY_LIMIT: Duration = Duration::from_secs(20);
/// A peer has its store on the disk well within this.
const STOP_LIMIT: Duration = Duration::from_secs(15);
const SETTLE_LIMIT: Duration = Duration::from_secs(3);

pub struct Process {
    child: Child,
    pub server: Server,
    pub address: SocketAddr,
    /// Of headcount: where its metrics are.
    pub admin: SocketAddr,
    log: PathBuf,
}

impl Process {
    /// Starts `server` with its data and its log in `dir`, and waits until it answers.
    pub fn start(server: Server, dir: &Path) -> Result<Self, Failure> {
        Self::start_with(server, dir, &[])
    }

    /// [`Self::start`] with these settings besides.
    pub fn start_with(server: Server, dir: &Path, settings: &[(&str, &str)]) -> Result<Self, Failure> {
        let (name, capacity) = match server {
            Server::Echo => ("echo", ""),
            Server::Bare => ("bare", ""),
            Server::Roomy => ("roomy", "1000000"),
            Server::Full => ("full", "4"),
            Server::Peer(peer, seats) => (peers::name(peer, seats), ""),
        };
        let (address, admin) = (free_address()?, free_address()?);
        let mut command = match server {
            Server::Echo | Server::Bare => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg(format!("--{name}")).arg(address.port().to_string());
                command
            }
            Server::Roomy | Server::Full => headcount(address, admin, &dir.join(name), capacity),
            Server::Peer(peer, seats) => {
                let data = dir.join(name);
                fs::create_dir(&data)?;
                peers::command(peer, seats, address, &data)
            }
        };
        let log = dir.join(format!("{name}.log"));
        let output = File::create(&log)?;
        command
            .envs(settings.iter().copied())
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        let child =
            command.spawn().map_err(|error| format!("cannot start {:?}: {error}", command.get_program()))?;
        let mut process = Self { child, server, address, admin, log };
        process.wait_until_ready()?;
        Ok(process)
    }

    /// CPU seconds that the process and what it has started have used.
    pub fn cpu_seconds(&self) -> Result<f64, Failure> {
        tree::cpu_seconds(self.child.id())
    }

    /// Bytes of memory that the process has resident.
    pub fn resident_bytes(&self) -> Result<u64, Failure> {
        memory::bytes(self.child.id(), "VmRSS")
    }

    /// Asks the process to end, and waits until it has.
    pub fn stop(&mut self) -> Result<(), Failure> {
        let pid = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &pid]).status()?;
        let status = self.child.wait()?;
        if status.success() { Ok(()) } else { Err(format!("a server ended with {status}").into()) }
    }

    /// Lets a peer stop what it has started, if it does so in time.
    fn end(&mut self) {
        let told = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        let since = Instant::now();
        while told.is_ok() && since.elapsed() < STOP_LIMIT && matches!(self.child.try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// The end of what the process has printed, for an error message.
    pub fn log_tail(&self) -> String {
        let log = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&log[log.len().saturating_sub(2000)..]).into_owned()
    }

    fn wait_until_ready(&mut self) -> Result<(), Failure> {
        let started = Instant::now();
        while started.elapsed() < READY_LIMIT {
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("a server ended at its start ({status}):\n{}", self.log_tail()).into());
            }
            if self.is_ready() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Err(format!("a server was not ready in {READY_LIMIT:?}:\n{}", self.log_tail()).into())
    }

    fn is_ready(&self) -> bool {
        let Ok(mut client) = Client::connect(self.address) else {
            return false;
        };
        match self.server {
            // The children of this executable answer as soon as they listen.
            Server::Echo | Server::Bare => true,
            Server::Roomy | Server::Full | Server::Peer(..) => {
                matches!(client.send("GET /ready"), Ok((200, _)))
            }
        }
    }
}

/// Waits until all processes are idle, or long enough: what a run leaves to be done (a checkpoint, a roll-up) must not
/// slow the next one, which may be its ceiling.
pub fn settle(processes: &[Process]) -> Result<(), Failure> {
    let used = || processes.iter().map(Process::cpu_seconds).sum::<Result<f64, Failure>>();
    let started = Instant::now();
    while started.elapsed() < SETTLE_LIMIT {
        let before = used()?;
        thread::sleep(Duration::from_millis(200));
        if used()? - before < 0.015 {
            break;
        }
    }
    Ok(())
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.server, Server::Peer(..)) {
            self.end();
        }
        // Both fail only when the process has ended already, and then there is nothing left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// headcount with its shipped defaults, but for the no-op routes and the seats that the side needs.
fn headcount(listen: SocketAddr, admin: SocketAddr, data_dir: &Path, capacity: &str) -> Command {
    let mut command = Command::new(headcount_path());
    command
        .arg("serve")
        .args(["--listen", &listen.to_string()])
        .args(["--admin-listen", &admin.to_string()])
        .arg("--data-dir")
        .arg(data_dir)
        .env("HEADCOUNT__SERVER__NOOP_ROUTES", "true")
        .env("HEADCOUNT__RESERVATIONS__DEFAULT_CAPACITY", capacity);
    command
}

/// `HEADCOUNT_BIN`, else what cargo built along with this bench.
pub fn headcount_path() -> PathBuf {
    let built = option_env!("CARGO_BIN_EXE_headcount").unwrap_or("target/release/headcount");
    std::env::var_os("HEADCOUNT_BIN").map_or_else(|| built.into(), PathBuf::from)
}

/// A free port. Somebody else could take it before the child does; then the child's start fails, and says so.
fn free_address() -> Result<SocketAddr, Failure> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

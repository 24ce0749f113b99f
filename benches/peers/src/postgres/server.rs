//! A PostgreSQL of our own: its data, its settings, its process.

use std::ffi::OsStr;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use tokio_postgres::{Client, Config, NoTls};

use crate::Failure;
use crate::serve::{LOOK, Running, START_LIMIT, bound_to_us};

/// Where Debian's package puts what is not for everybody's path.
const BIN: &str = "/usr/lib/postgresql/15/bin";
/// Whom the package made for it: PostgreSQL refuses to run as root.
const USER: &str = "postgres";

/// Sized for the machine's part that one side may have. Durability and everything that is not here is as it ships:
/// `fsync`, `synchronous_commit` and `full_page_writes` are on, autovacuum too.
const SETTINGS: [(&str, &str); 8] = [
    // No client comes over the network.
    ("listen_addresses", ""),
    ("fsync", "on"),
    ("synchronous_commit", "on"),
    ("shared_buffers", "1GB"),
    ("max_connections", "100"),
    // A checkpoint, and the whole pages that follow it into the log, every few minutes and not every gigabyte.
    ("max_wal_size", "8GB"),
    ("min_wal_size", "1GB"),
    ("checkpoint_timeout", "5min"),
];

/// A running server. Dropped, it stops.
pub struct Server {
    running: Running,
    sockets: PathBuf,
}

impl Server {
    /// Makes a cluster in `dir`, and starts a server on it.
    pub fn start(dir: &Path) -> Result<Self, Failure> {
        let dir = std::fs::canonicalize(dir)?;
        let user = is_root()?.then_some(USER);
        if user.is_some() {
            hand_over(&dir)?;
        }
        let data = dir.join("data");
        let initdb = bound_to_us(&program("initdb"), user)
            .args(["--auth=trust", "--encoding=UTF8", "--no-locale", "--username=postgres", "--no-sync"])
            .args([OsStr::new("--pgdata"), data.as_os_str()])
            .current_dir(&dir)
            .stdout(Stdio::null())
            .status()?;
        if !initdb.success() {
            return Err(format!("initdb ended with {initdb}").into());
        }
        let mut command = bound_to_us(&program("postgres"), user);
        command.current_dir(&dir).args([
            OsStr::new("-D"),
            data.as_os_str(),
            OsStr::new("-k"),
            dir.as_os_str(),
        ]);
        for (name, value) in SETTINGS {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        // SIGINT: ends the connections, and stops as soon as what it has is on the disk.
        Ok(Self { running: Running::start(command, "INT")?, sockets: dir })
    }

    /// How to connect: by its socket.
    pub fn config(&self) -> Config {
        let mut config = Config::new();
        config.host_path(&self.sockets).user("postgres").dbname("postgres");
        config
    }

    /// A connection, as soon as the server gives one.
    pub async fn ready(&mut self) -> Result<Client, Failure> {
        let since = Instant::now();
        loop {
            match self.config().connect(NoTls).await {
                Ok((client, connection)) => {
                    tokio::spawn(connection);
                    return Ok(client);
                }
                Err(error) if since.elapsed() > START_LIMIT => return Err(error.into()),
                Err(_) => self.running.check()?,
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

fn program(name: &str) -> String {
    format!("{BIN}/{name}")
}

fn is_root() -> Result<bool, Failure> {
    Ok(id(&["-u"])? == 0)
}

/// Makes `dir` the server's, and lets it through the directory above, which is its maker's alone.
fn hand_over(dir: &Path) -> Result<(), Failure> {
    chown(dir, Some(id(&["-u", USER])?), Some(id(&["-g", USER])?))?;
    if let Some(parent) = dir.parent() {
        let mut permissions = std::fs::metadata(parent)?.permissions();
        permissions.set_mode(permissions.mode() | 0o011);
        std::fs::set_permissions(parent, permissions)?;
    }
    Ok(())
}

fn id(arguments: &[&str]) -> Result<u32, Failure> {
    let output = Command::new("id").args(arguments).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse()?)
}

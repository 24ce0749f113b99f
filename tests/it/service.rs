//! The real binary, started on ports of its own over a data directory of its own.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::client::Client;

/// The binary under test.
pub const HEADCOUNT: &str = env!("CARGO_BIN_EXE_headcount");

/// How long a start or a stop may take before the test gives up. Never how long one is expected to take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How to start the service: settings as environment variables, over a directory that outlives it.
#[derive(Clone)]
pub struct Setup {
    directory: Arc<TempDir>,
    environment: Vec<(String, String)>,
    listen: &'static str,
}

impl Setup {
    /// A new, empty data directory and the shipped settings.
    pub fn new() -> Self {
        Self { directory: Arc::new(TempDir::new().unwrap()), environment: Vec::new(), listen: "127.0.0.1:0" }
    }

    /// One setting more: `("likes.shards", "4")`.
    pub fn with(mut self, key: &str, value: impl ToString) -> Self {
        let variable = format!("HEADCOUNT__{}", key.to_uppercase().replace('.', "__"));
        self.environment.push((variable, value.to_string()));
        self
    }

    /// Any environment variable.
    pub fn with_env(mut self, variable: &str, value: impl ToString) -> Self {
        self.environment.push((variable.to_owned(), value.to_string()));
        self
    }

    /// Where both listeners listen; loopback without it.
    pub fn listening_on(mut self, address: &'static str) -> Self {
        self.listen = address;
        self
    }

    /// Where the data is.
    pub fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// A place for other files of the test.
    pub fn scratch(&self) -> &Path {
        self.directory.path()
    }

    /// Starts the service and waits until it is ready.
    pub fn start(&self) -> Service {
        match self.try_start() {
            Ok(service) => service,
            Err(output) => panic!("headcount did not start: {output}"),
        }
    }

    /// Starts the service; its exit status and what it said, if it ends instead of getting ready.
    pub fn try_start(&self) -> Result<Service, String> {
        let data_dir = self.data_dir();
        let ports = ["--listen", self.listen, "--admin-listen", self.listen];
        self.try_start_with(&[&ports[..], &["--data-dir", data_dir.to_str().unwrap()]].concat())
    }

    /// The same with these flags and no others; the settings must find ports and a directory of their own.
    pub fn try_start_with(&self, flags: &[&str]) -> Result<Service, String> {
        let log = self.scratch().join("headcount.log");
        let mut child = self
            .command(&[&["serve"], flags].concat())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::options().create(true).append(true).open(&log).unwrap())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        // headcount is ready: public API on http://A, operator's page and admin on http://B, data in D
        let ready = stdout.lines().map_while(Result::ok).find(|line| line.starts_with("headcount is ready"));
        let Some(ready) = ready else {
            let status = child.wait().unwrap();
            return Err(format!("{status}\n{}", std::fs::read_to_string(&log).unwrap_or_default()));
        };
        let address = |after: &str| {
            let (_, rest) = ready.split_once(after).unwrap();
            rest.split(',').next().unwrap().to_owned()
        };
        let public = address("public API on http://");
        let admin = address("admin on http://");
        let (client, admin_client) = (Client::new(&public), Client::new(&admin));
        let _directory = Arc::clone(&self.directory);
        Ok(Service {
            client,
            admin: admin_client,
            public,
            admin_address: admin,
            ready,
            child,
            log,
            _directory,
        })
    }

    /// Runs a subcommand to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The same on a terminal of its own (`script` is an essential package of Debian's).
    pub fn run_on_a_terminal(&self, arguments: &[&str]) -> Output {
        let line = [&[HEADCOUNT], arguments].concat().join(" ");
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).stdin(Stdio::null());
        script.current_dir(self.scratch()).envs(self.environment.iter().cloned()).output().unwrap()
    }

    /// `headcount verify` on the data directory: whether it passes, and what it prints.
    pub fn verify(&self) -> (bool, String) {
        let output = self.run(&["verify", "--data-dir", self.data_dir().to_str().unwrap()]);
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.success(), text)
    }

    /// Asserts that `headcount verify` passes.
    pub fn assert_verified(&self) {
        let (passes, text) = self.verify();
        assert!(passes, "{text}");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(HEADCOUNT);
        // Outside the repository, so that only the settings of the test apply.
        command.args(arguments).current_dir(self.scratch()).envs(self.environment.iter().cloned());
        command
    }
}

/// Waits until a condition holds.
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "{what}: not in {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A running service. Dropped, it is killed.
pub struct Service {
    /// To the public API.
    pub client: Client,
    /// To the admin API.
    pub admin: Client,
    /// The public API's address.
    pub public: String,
    /// What it printed when it was ready.
    pub ready: String,
    /// The admin API's address.
    pub admin_address: String,
    child: Child,
    log: PathBuf,
    /// Kept while its files are in use, also where the setup is gone.
    _directory: Arc<TempDir>,
}

impl Service {
    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// kill -9.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM and does not wait.
    pub fn send_sigterm(&self) {
        self.send("TERM");
    }

    /// Sends a signal (`STOP`) and does not wait.
    pub fn send(&self, signal: &str) {
        let sent =
            Command::new("kill").args([&format!("-{signal}"), &self.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// SIGTERM, and the exit status.
    pub fn stop(mut self) -> ExitStatus {
        self.send_sigterm();
        self.wait()
    }

    /// The exit status, once it ends.
    pub fn wait(&mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(started.elapsed() < PATIENCE, "headcount did not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The log so far, a line each.
    pub fn log(&self) -> Vec<String> {
        std::fs::read_to_string(&self.log).unwrap().lines().map(str::to_owned).collect()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};
use headcount::admin::backup::{BackupOptions, RestoreOptions};
use headcount::admin::health::HealthOptions;
use headcount::admin::reshard::Layout;
use headcount::admin::space::Space;
use headcount::admin::transfer;
use headcount::config::{self, Config, FileChoice, Flag, Loaded, address};
use headcount::data_dir::{self, DataDir, Manifest};
use headcount::http::auth::new_key;
use headcount::likes::rollup::schedule;
use headcount::partition::Workers;
use headcount::server::{self, Process};
use headcount::{admin, log, metrics};
use tokio::signal::unix::{SignalKind, signal};

/// Commands are allocated by one thread and freed by another, which the system's allocator is slow at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Counts people when they all arrive at once, and never gets it wrong.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve (also without a command, and then without options)
    Serve(Serve),
    /// Audit a data directory, beside the running service or without it; exit 1 if something is wrong
    Verify(admin::verify::Options),
    /// Move the data to another number of shards or partitions, while no service runs on it
    Reshard(admin::reshard::Options),
    /// Have a running service write a backup, through its admin API; a key comes from HEADCOUNT_API_KEY
    Backup(BackupOptions),
    /// Make a data directory of a backup
    Restore(RestoreOptions),
    /// Bring likes, or base counts, from a file into a data directory that nobody serves from
    Import(transfer::import::Options),
    /// Write likes, or base counts, into a file, beside the running service or without it
    Export(transfer::Which),
    /// Check the settings and say where they come from, without serving
    CheckConfig {
        /// The settings file [default: config/headcount.toml if it exists]
        #[arg(long)]
        config: Option<PathBuf>,
    },
    /// Ask a running service whether it is well; exit 1 if not
    Health(HealthOptions),
    /// Print a completion script for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man,
    /// Make an API key; prints it once, with what the settings need to know it
    NewKey {
        /// A name for the key
        #[arg(long, default_value = "app")]
        name: String,
        /// What it may do: read, write or admin; once for each [default: read and write]
        #[arg(long = "scope", value_name = "SCOPE", value_parser = ["read", "write", "admin"], hide_possible_values = true)]
        scopes: Vec<String>,
    },
}

#[derive(Debug, Default, Args)]
struct Serve {
    /// The settings file [default: config/headcount.toml if it exists]
    #[arg(long)]
    config: Option<PathBuf>,
    /// server.listen: address of the public API
    #[arg(long, value_name = "ADDR", value_parser = address)]
    listen: Option<SocketAddr>,
    /// server.admin_listen: address of the admin API
    #[arg(long, value_name = "ADDR", value_parser = address)]
    admin_listen: Option<SocketAddr>,
    /// storage.data_dir: where data is kept
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

fn main() -> ExitCode {
    let command = Cli::parse().command.unwrap_or(Command::Serve(Serve::default()));
    let done = match command {
        Command::Serve(options) => serve(&options),
        Command::Verify(options) => match verify(&options) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Command::Reshard(options) => reshard(options),
        Command::Backup(options) => backup(options),
        Command::Restore(options) => restore(options),
        Command::Import(options) => import(&options),
        Command::Export(which) => export(&which),
        Command::CheckConfig { config } => check_config(config),
        Command::Health(options) => health(options),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "headcount", &mut std::io::stdout());
            Ok(())
        }
        Command::Man => admin::manual::write(Cli::command(), &mut std::io::stdout()).map_err(Failure::from),
        Command::NewKey { name, scopes } => print_new_key(&name, scopes),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("headcount: {error}");
            ExitCode::FAILURE
        }
    }
}

type Failure = Box<dyn std::error::Error>;

fn load(file: Option<PathBuf>, flags: &[Flag]) -> Result<Loaded, Failure> {
    let loaded = Config::load(FileChoice::from(file), config::environment(), flags)?;
    schedule::check(&loaded.config.rollup.schedule).map_err(|why| {
        loaded.refuse("rollup.schedule", format!("must be a cron schedule with seconds ({why})"))
    })?;
    Ok(loaded)
}

fn check_config(file: Option<PathBuf>) -> Result<(), Failure> {
    let loaded = load(file, &[])?;
    println!("the settings are good: {}", loaded.sources);
    for warning in config::misspelt_variables() {
        eprintln!("headcount: {warning}");
    }
    Ok(())
}

/// Without `--data-dir`, the directory that `serve` would use here.
fn verify(options: &admin::verify::Options) -> Result<ExitCode, Failure> {
    let config = match (&options.data_dir, &options.config, options.repair) {
        // An audit needs no settings, and none stop it.
        (Some(_), None, false) => Config::default(),
        _ => load(options.config.clone(), &[])?.config,
    };
    let data_dir = options.data_dir.as_ref().unwrap_or(&config.storage.data_dir);
    Ok(admin::verify::command(data_dir, options, &config))
}

fn import(options: &transfer::import::Options) -> Result<(), Failure> {
    let config = load(options.which.config.clone(), &[])?.config;
    let data_dir = options.which.data_dir.as_ref().unwrap_or(&config.storage.data_dir);
    let imported = transfer::import::run(options, data_dir, &config)?;
    println!("imported {} rows, {} of them new; {} bad lines", imported.rows, imported.new, imported.bad);
    Ok(())
}

fn export(which: &transfer::Which) -> Result<(), Failure> {
    let config = load(which.config.clone(), &[])?.config;
    let rows = transfer::export::run(which, which.data_dir.as_ref().unwrap_or(&config.storage.data_dir))?;
    // Standard output may be the file.
    eprintln!("exported {rows} rows");
    Ok(())
}

/// Prints what it would take, or does it.
fn reshard(options: admin::reshard::Options) -> Result<(), Failure> {
    let mut config = load(options.config, &[])?.config;
    if let Some(data_dir) = options.data_dir {
        config.storage.data_dir = data_dir;
    }
    let path = config.storage.data_dir.clone();
    let manifest = Manifest::read(&path)?.ok_or_else(|| data_dir::Error::absent(&path))?;
    let to = Layout {
        shards: options.shards.unwrap_or(manifest.shards),
        partitions: options.partitions.unwrap_or(manifest.partitions),
    };
    if options.dry_run {
        let estimate = admin::reshard::estimate(&config, &path, to)?;
        print!("{estimate}");
        if estimate.is_short() {
            return Err("no room for the move; nothing was changed".into());
        }
        println!("dry run: nothing was changed");
        return Ok(());
    }
    let mut data = DataDir::open_as_placed(&path, None, None)?;
    let mut bar = admin::reshard::Bar::default();
    let mut tell = |progress: &admin::reshard::Progress| bar.show(progress);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let moved = runtime.block_on(server::reshard(&config, &mut data, to, &mut tell));
    bar.end();
    let moved = moved?;
    println!(
        "moved {} rows in {:.1} s: from {} shards on {} partitions to {} on {}",
        moved.rows,
        moved.took.as_secs_f64(),
        manifest.shards,
        manifest.partitions,
        to.shards,
        to.partitions
    );
    Ok(())
}

fn backup(options: BackupOptions) -> Result<(), Failure> {
    let address = match options.admin {
        Some(address) => address,
        None => load(options.config, &[])?.config.server.admin_listen,
    };
    let key = std::env::var("HEADCOUNT_API_KEY").ok();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let taken = runtime.block_on(admin::backup::ask(address, key.as_deref(), &options.dir))?;
    println!("{taken}");
    Ok(())
}

fn health(options: HealthOptions) -> Result<(), Failure> {
    let address = match options.address {
        Some(address) => address,
        None => load(options.config, &[])?.config.server.listen,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(admin::health::ask(address, options.ready))?;
    println!("{}", if options.ready { "ready" } else { "ok" });
    Ok(())
}

fn restore(options: RestoreOptions) -> Result<(), Failure> {
    let config = load(options.config, &[])?.config;
    let target = options.data_dir.unwrap_or_else(|| config.storage.data_dir.clone());
    let restored = admin::backup::restore(&options.backup, &target, &Space::of(&config))?;
    println!(
        "restored {} bytes into {}, as they were at {} ms since 1970",
        restored.bytes,
        target.display(),
        restored.taken_at_ms
    );
    Ok(())
}

/// Files left for everything that is no connection.
const RESERVED_FILES: u64 = 256;

/// Raises the limit of open files as far as the system allows, and keeps `server.max_connections` under it:
/// a connection too many must be told so, and not starve the stores of files.
fn raise_open_files(config: &mut Config) {
    let limit = match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) => limit,
        Err(error) => return tracing::warn!(%error, "the limit of open files is not known"),
    };
    let connections = usize::try_from(limit.saturating_sub(RESERVED_FILES)).unwrap_or(usize::MAX).max(1);
    tracing::info!(
        open_files = limit,
        connections,
        "the system's limit of open files, and what it leaves for connections"
    );
    if config.server.max_connections > connections {
        // Who left it as it is shipped asked for nothing; the line above has the number.
        if config.server.max_connections != Config::default().server.max_connections {
            tracing::warn!(
                max_connections = config.server.max_connections,
                in_force = connections,
                "server.max_connections is more than the limit of open files allows"
            );
        }
        config.server.max_connections = connections;
    }
}

fn print_new_key(name: &str, mut scopes: Vec<String>) -> Result<(), Failure> {
    let new = new_key()?;
    if scopes.is_empty() {
        scopes = vec!["read".to_owned(), "write".to_owned()];
    }
    let scopes = toml::Value::from(scopes);
    // As TOML writes a text, which is not quite as Rust does.
    let name = toml::Value::from(name);
    println!("key (shown once): {}\n", new.key);
    println!("# add to the settings file:");
    println!("[[auth.keys]]\nname = {name}\nsha256 = \"{}\"\nscopes = {scopes}", new.sha256);
    Ok(())
}

fn serve(options: &Serve) -> Result<(), Failure> {
    let flag = |name, key, value: Option<String>| value.map(|value| Flag { name, key, value });
    let flags = [
        flag("--listen", "server.listen", options.listen.map(|address| address.to_string())),
        flag(
            "--admin-listen",
            "server.admin_listen",
            options.admin_listen.map(|address| address.to_string()),
        ),
        flag(
            "--data-dir",
            "storage.data_dir",
            options.data_dir.as_ref().map(|dir| dir.display().to_string()),
        ),
    ];
    let flags: Vec<Flag> = flags.into_iter().flatten().collect();
    let mut loaded = load(options.config.clone(), &flags)?;
    let log = log::start(&loaded.config.log)?;
    let process =
        Process { metrics: Some(metrics::install()?), log_dropped: Some(log.dropped()), workers: None };
    tracing::info!(version = env!("CARGO_PKG_VERSION"), settings = %loaded.sources, "starting");
    for warning in config::misspelt_variables() {
        tracing::warn!("{warning}");
    }
    raise_open_files(&mut loaded.config);

    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = loaded.config.server.worker_threads {
        runtime.worker_threads(threads);
    }
    let workers = Workers::of(&mut runtime);
    let process = Process { workers: Some(workers), ..process };
    runtime.enable_all().build()?.block_on(serve_until_told(&loaded.config, process))
}

async fn serve_until_told(config: &Config, process: Process) -> Result<(), Failure> {
    // Before the service starts, so that a signal during the start is not lost.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    if let Some(metrics) = process.metrics.clone() {
        tokio::spawn(async move {
            let mut every = tokio::time::interval(std::time::Duration::from_secs(1));
            loop {
                every.tick().await;
                metrics.run_upkeep();
            }
        });
    }
    let running = server::start(config, process).await?;
    println!(
        "headcount is ready: public API on http://{}, operator's page and admin on http://{}, data in {}",
        running.public,
        running.admin,
        std::path::absolute(&config.storage.data_dir)?.display()
    );
    tracing::info!(public = %running.public, admin = %running.admin, "ready");
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping: finishing what is in flight; a second signal exits at once");
    tokio::select! {
        () = running.stop() => {}
        _ = terminate.recv() => std::process::exit(1),
        _ = interrupt.recv() => std::process::exit(1),
    }
    tracing::info!("stopped");
    Ok(())
}

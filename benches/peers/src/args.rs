//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args as Fields, Parser, Subcommand};

/// The jobs of headcount over another store.
#[derive(Debug, Parser)]
#[command(name = "peers")]
pub struct Args {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub kind: Kind,
}

/// What every peer needs.
#[derive(Debug, Fields)]
pub struct Common {
    /// Where to listen.
    #[arg(long)]
    pub listen: SocketAddr,
    /// Where the store's data are made; the directory must be there, and empty.
    #[arg(long)]
    pub dir: PathBuf,
    /// Seats of a workshop that nobody has set up.
    #[arg(long, default_value_t = 1_000_000)]
    pub capacity: i32,
}

/// Which store.
#[derive(Debug, Subcommand)]
pub enum Kind {
    /// PostgreSQL 15, from Debian's package.
    Postgres(Postgres),
    /// Redis 7, from Debian's package, which syncs its log before every answer.
    Redis(Redis),
    /// workerd's Durable Objects with SQLite storage, from npm's package.
    Workerd,
}

/// How PostgreSQL is used.
#[derive(Debug, Fields)]
pub struct Postgres {
    /// Rows among which an item's total is spread.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(i32).range(1..=256))]
    pub slots: i32,
    /// Connections to the server.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=90))]
    pub pool: u16,
}

/// How Redis is used.
#[derive(Debug, Fields)]
pub struct Redis {
    /// Connections to the server, each shared by many requests.
    #[arg(long, env = "PEERS_REDIS_CONNECTIONS", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub connections: u16,
}

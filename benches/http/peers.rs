//! The servers that headcount is compared with. They are a crate of their own (`benches/peers`), which `benches/compare` builds.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sides::{Peer, Seats};

/// Rows among which [`Peer::PostgresSlots`] spreads a total.
const SLOTS: &str = "16";
/// Connections that were best for it, of 4, 8, 16 and 32.
const SLOTS_POOL: &str = "16";
/// The same where a total is one row: more of them only wait for its lock.
const POOL: &str = "8";

/// The command that serves as `peer` on `address`, with its data in `dir`, and ends with this thread.
pub fn command(peer: Peer, seats: Seats, address: SocketAddr, dir: &Path) -> Command {
    let capacity = match seats {
        Seats::ForAll => "1000000",
        Seats::Four => "4",
    };
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "TERM"])
        .arg(path())
        .args(["--listen", &address.to_string(), "--capacity", capacity])
        .arg("--dir")
        .arg(dir);
    match peer {
        Peer::Postgres => command.args(["postgres", "--pool", POOL]),
        Peer::PostgresSlots => command.args(["postgres", "--slots", SLOTS, "--pool", SLOTS_POOL]),
        Peer::Redis => command.arg("redis"),
        Peer::Workerd => command.arg("workerd"),
    };
    command
}

/// Its name, and whose seats are few.
pub fn name(peer: Peer, seats: Seats) -> &'static str {
    match (peer, seats) {
        (Peer::Postgres, Seats::ForAll) => "postgres",
        (Peer::Postgres, Seats::Four) => "postgres-full",
        (Peer::PostgresSlots, Seats::ForAll) => "postgres-16",
        (Peer::PostgresSlots, Seats::Four) => "postgres-16-full",
        (Peer::Redis, Seats::ForAll) => "redis",
        (Peer::Redis, Seats::Four) => "redis-full",
        (Peer::Workerd, Seats::ForAll) => "workerd",
        (Peer::Workerd, Seats::Four) => "workerd-full",
    }
}

/// `HEADCOUNT_PEERS_BIN`, else where `benches/compare` builds it.
fn path() -> PathBuf {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/peers/release/peers");
    std::env::var_os("HEADCOUNT_PEERS_BIN").map_or(built, PathBuf::from)
}

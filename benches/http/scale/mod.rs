//! A service with very many likes, from their import to their move, beside an empty one.
//!
//! Likes of a tenth as many items by a tenth as many users, spread evenly and in no order, user ids of 16 bytes.

mod command;
mod rates;
mod rollup;
mod watchers;
mod workshops;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::Failure;
use crate::args::Settings;
use crate::child::Process;
use crate::client::{self, Client};
use crate::items::{Items, mix};
use crate::report;
use crate::sides::Server;

/// Requests and users of the load are numbered from here on: no imported user is among them.
const FIRST_NUMBER: u64 = 1 << 40;
/// Likes for each of the workshops.
const WORKSHOPS: u64 = 20;
const PATIENCE: Duration = Duration::from_secs(300);
const MIB: f64 = 1024.0 * 1024.0;

pub fn measure(likes: u64, settings: &Settings) -> Result<(), Failure> {
    let dir = tempfile::Builder::new().prefix("headcount-bench-").tempdir_in(&settings.dir)?;
    println!("machine: {}", report::machine(dir.path())?);
    let (full, empty) = (dir.path().join("full"), dir.path().join("empty"));
    fs::create_dir(&full)?;
    fs::create_dir(&empty)?;
    // Where a server keeps its data.
    let data = full.join("roomy");

    println!("\n| step | rows | seconds | rows/s | most memory MiB |\n|---|---:|---:|---:|---:|");
    let file = likes_file(dir.path(), likes)?;
    let data_dir = ["--data-dir", path(&data)?];
    command::run("import", &[&["import", path(&file)?], &data_dir[..]].concat())?.print("import", likes);
    fs::remove_file(&file)?;
    bytes_a_like(&data, likes)?;

    let items = likes / 10;
    let (mut loaded, started) = start(&full)?;
    let rolled_up = wait_for_rollup(&loaded, likes, started)?;
    println!(
        "\nstart with {likes} likes: ready in {:.2?}, all rolled up after {rolled_up:.1?}",
        started.ready_in
    );
    let (bare, _) = start(&empty)?;

    rates::measure(&loaded, &bare, items, settings)?;
    watchers::measure(&loaded, items)?;
    println!(
        "\nresident memory of the loaded service at the end: {:.0} MiB",
        loaded.resident_bytes()? as f64 / MIB
    );
    drop(bare);
    loaded.stop()?;
    rollup::measure(&full, items)?;

    println!("\n| step | rows | seconds | rows/s | most memory MiB |\n|---|---:|---:|---:|---:|");
    command::run("verify", &[&["verify"], &data_dir[..]].concat())?.print("verify", likes);
    let moved = [&["reshard", "--shards", "32"], &data_dir[..]].concat();
    command::run("reshard", &moved)?.print("reshard from 16 to 32 shards", likes);
    command::run("verify", &[&["verify"], &data_dir[..]].concat())?.print("verify", likes);
    workshops::measure(dir.path(), likes / WORKSHOPS, settings)
}

/// Only what comes last of that, with so many workshops.
pub fn measure_workshops(workshops: u64, settings: &Settings) -> Result<(), Failure> {
    let dir = tempfile::Builder::new().prefix("headcount-bench-").tempdir_in(&settings.dir)?;
    println!("machine: {}", report::machine(dir.path())?);
    workshops::measure(dir.path(), workshops, settings)
}

/// The like in the row `row` of the file.
fn like(row: u64, likes: u64) -> (u64, u64) {
    let user = mix(row % (likes / 10));
    let item = mix(mix(row)) % (likes / 10);
    (item, user)
}

fn likes_file(dir: &Path, likes: u64) -> Result<PathBuf, Failure> {
    let path = dir.join("likes.csv");
    let mut to = BufWriter::with_capacity(1 << 20, File::create(&path)?);
    for row in 0..likes {
        let (item, user) = like(row, likes);
        writeln!(to, "i{item:07},{user:016x}")?;
    }
    to.flush()?;
    Ok(path)
}

fn path(path: &Path) -> Result<&str, Failure> {
    path.to_str().ok_or_else(|| "the directory's name is no text".into())
}

/// What the files take, each part by the likes in it.
fn bytes_a_like(data: &Path, likes: u64) -> Result<(), Failure> {
    let (mut partitions, mut summary) = (0, 0);
    for entry in fs::read_dir(data)? {
        let entry = entry?;
        match entry.file_name().to_string_lossy() {
            name if name.starts_with("partition-") => partitions += entry.metadata()?.len(),
            name if name.starts_with("summary") => summary += entry.metadata()?.len(),
            _ => {}
        }
    }
    let each = |bytes: u64| bytes as f64 / likes as f64;
    println!(
        "\nbytes on disk a like: {:.1}, of them {:.1} in the partitions and {:.1} in the summary",
        each(partitions + summary),
        each(partitions),
        each(summary)
    );
    Ok(())
}

#[derive(Clone, Copy)]
struct Start {
    at: Instant,
    ready_in: Duration,
}

fn start(dir: &Path) -> Result<(Process, Start), Failure> {
    let at = Instant::now();
    let process = Process::start(Server::Roomy, dir)?;
    Ok((process, Start { at, ready_in: at.elapsed() }))
}

/// Waits until a roll-up has ended that began after the start, and so has carried all that was imported.
fn wait_for_rollup(process: &Process, likes: u64, start: Start) -> Result<Duration, Failure> {
    let (item, _) = like(0, likes);
    while start.at.elapsed() < PATIENCE {
        let total = Client::connect(process.address)?.json(&format!("GET /likes/i{item:07}"))?;
        if client::count(&total, "ageMs")? < start.at.elapsed().as_millis() as u64 {
            return match client::count(&total, "total")? {
                0 => Err("an imported item has no total".into()),
                _ => Ok(start.at.elapsed()),
            };
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Err("what was imported was never rolled up".into())
}

/// All items, each once before any comes again.
fn in_turn(items: u64) -> std::sync::Arc<Items> {
    std::sync::Arc::new(Items::InTurn(items))
}

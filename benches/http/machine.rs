//! What the figures depend on: the processor, the disk, and who used how much of the former.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::Failure;

/// Linux counts CPU time for `/proc` in ticks of 10 ms, on every architecture that is still built.
pub const TICKS_PER_SECOND: f64 = 100.0;
const SYNCS: usize = 200;

/// Cores and processor, in a line.
pub fn describe() -> String {
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    format!("{cores} cores, {}", model.map_or("processor unknown", |(_, name)| name))
}

/// The median time of a 4 KiB append made durable in `dir`.
pub fn sync_time(dir: &Path) -> Result<Duration, Failure> {
    let path = dir.join("sync-probe");
    let mut file = File::create(&path)?;
    let mut times = Vec::with_capacity(SYNCS);
    for _ in 0..SYNCS {
        let begun = Instant::now();
        file.write_all(&[0x5a; 4096])?;
        file.sync_data()?;
        times.push(begun.elapsed());
    }
    fs::remove_file(&path)?;
    times.sort_unstable();
    Ok(times[SYNCS / 2])
}

/// User and system CPU seconds of the process `pid` (a number, or `self`), all its threads together.
pub fn cpu_seconds(pid: &str) -> Result<f64, Failure> {
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path)?;
    // The program's name, in parentheses, may hold spaces: fields are counted from its end.
    let fields = stat.rsplit_once(") ").map(|(_, rest)| rest.split(' ').collect::<Vec<_>>());
    let ticks = |index: usize| fields.as_ref()?.get(index)?.parse::<u64>().ok();
    let (Some(user), Some(system)) = (ticks(11), ticks(12)) else {
        return Err(format!("{path} is not as expected: {stat}").into());
    };
    Ok((user + system) as f64 / TICKS_PER_SECOND)
}

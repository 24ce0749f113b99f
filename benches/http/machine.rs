//! What the figures depend on: the processor, the disk, and who used how much of the former.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::Failure;

/// Linux counts CPU time for `/proc` in ticks of 10 ms, on every architecture that is still built.
const TICKS_PER_SECOND: f64 = 100.0;
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
    let times = Times::read(pid)?;
    Ok(times.own / TICKS_PER_SECOND)
}

/// The same of the process and of all that descend from it, those that have ended too.
pub fn tree_cpu_seconds(root: u32) -> Result<f64, Failure> {
    let mut others = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) else {
            continue;
        };
        // It may have ended since; then its parent has its time.
        if let Ok(times) = Times::read(pid) {
            others.push((pid.parse::<u32>()?, times));
        }
    }
    let (mut ticks, mut found) = (0.0, vec![root]);
    while let Some(pid) = found.pop() {
        ticks += others.iter().filter(|(other, _)| *other == pid).map(|(_, times)| times.all()).sum::<f64>();
        found.extend(others.iter().filter(|(_, times)| times.parent == pid).map(|(other, _)| other));
    }
    Ok(ticks / TICKS_PER_SECOND)
}

/// What `/proc` says of a process's time, in ticks.
struct Times {
    parent: u32,
    own: f64,
    /// Of its children that have ended.
    ended: f64,
}

impl Times {
    fn all(&self) -> f64 {
        self.own + self.ended
    }

    fn read(pid: &str) -> Result<Self, Failure> {
        let path = format!("/proc/{pid}/stat");
        let stat = fs::read_to_string(&path)?;
        // The program's name, in parentheses, may hold spaces: fields are counted from its end.
        let fields: Vec<&str> =
            stat.rsplit_once(") ").map(|(_, rest)| rest.split(' ').collect()).unwrap_or_default();
        let number = |index: usize| {
            let field = fields.get(index).and_then(|field| field.parse::<u64>().ok());
            field.ok_or_else(|| format!("{path} is not as expected: {stat}"))
        };
        let sum = |first| Ok::<_, String>((number(first)? + number(first + 1)?) as f64);
        Ok(Self { parent: u32::try_from(number(1)?)?, own: sum(11)?, ended: sum(13)? })
    }
}

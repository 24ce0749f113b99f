//! How much of the processor a process and all that it has started have used: a peer's store is a process, or several.

use std::fs;

use crate::Failure;
use crate::machine::TICKS_PER_SECOND;

/// User and system CPU seconds of the process `root` and of all that descend from it, those that have ended too.
pub fn cpu_seconds(root: u32) -> Result<f64, Failure> {
    let mut all = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid = name.to_str().and_then(|name| name.parse::<u32>().ok());
        // It may have ended since; then its parent has its time.
        all.extend(pid.and_then(|pid| Some((pid, Times::read(pid)?))));
    }
    let (mut ticks, mut found) = (0.0, vec![root]);
    while let Some(pid) = found.pop() {
        ticks += all.iter().filter(|(other, _)| *other == pid).map(|(_, times)| times.ticks).sum::<f64>();
        found.extend(all.iter().filter(|(_, times)| times.parent == pid).map(|(other, _)| other));
    }
    Ok(ticks / TICKS_PER_SECOND)
}

/// What `/proc` says of a process's time.
struct Times {
    parent: u32,
    /// Its own, and that of its children that have ended.
    ticks: f64,
}

impl Times {
    fn read(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The program's name, in parentheses, may hold spaces: fields are counted from its end.
        let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
        let parent = fields.get(1)?.parse().ok()?;
        let ticks = fields.get(11..15)?.iter().map(|field| field.parse::<u64>());
        Some(Self { parent, ticks: ticks.sum::<Result<u64, _>>().ok()? as f64 })
    }
}

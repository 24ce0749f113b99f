//! How much memory a process has.

use std::fs;

use crate::Failure;

/// A line of what `/proc` says of a process's memory: `VmRSS` is what is resident, `VmHWM` the most that ever was.
pub fn bytes(pid: u32, line: &str) -> Result<u64, Failure> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let kib = status
        .lines()
        .find_map(|found| found.strip_prefix(line)?.strip_prefix(':')?.trim().strip_suffix(" kB"));
    Ok(kib.ok_or_else(|| format!("the process {pid} has no {line}"))?.parse::<u64>()? * 1024)
}

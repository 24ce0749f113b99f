//! Counting by callgrind.

use std::process::Command;

use crate::Failure;
use crate::work::Kind;

/// Instructions of the whole child.
pub fn count(kind: Kind, commands: u64) -> Result<u64, Failure> {
    let dir = tempfile::tempdir()?;
    let output = dir.path().join("callgrind.out");
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--callgrind-out-file={}", output.display()))
        .arg(std::env::current_exe()?)
        .args(["--work", kind.name(), &commands.to_string()])
        .output()
        .map_err(|error| format!("valgrind (Debian's package of that name): {error}"))?;
    if !run.status.success() {
        return Err(format!("under valgrind: {}", String::from_utf8_lossy(&run.stderr)).into());
    }
    let text = std::fs::read_to_string(&output)?;
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    Ok(total.ok_or("callgrind wrote no totals")?.trim().parse()?)
}

//! A command of headcount's, run to its end, with its time and memory.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Failure;
use crate::{child, memory};

const LOOK: Duration = Duration::from_millis(20);

pub struct Ran {
    elapsed: Duration,
    most_memory: u64,
}

/// Runs `headcount` with `arguments`; an exit other than 0 is a failure.
pub fn run(name: &str, arguments: &[&str]) -> Result<Ran, Failure> {
    let started = Instant::now();
    let mut command = Command::new(child::headcount_path());
    let mut child =
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let mut most_memory = 0;
    let status = loop {
        // Of a process that has just ended there is no such line any more.
        most_memory = memory::bytes(child.id(), "VmHWM").unwrap_or(most_memory);
        match child.try_wait()? {
            Some(status) => break status,
            None => thread::sleep(LOOK),
        }
    };
    if !status.success() {
        return Err(format!("headcount {name} ended with {status}").into());
    }
    Ok(Ran { elapsed: started.elapsed(), most_memory })
}

impl Ran {
    pub fn print(&self, step: &str, rows: u64) {
        let seconds = self.elapsed.as_secs_f64();
        let memory = self.most_memory as f64 / super::MIB;
        println!("| {step} | {rows} | {seconds:.1} | {:.0} | {memory:.0} |", rows as f64 / seconds);
    }
}

//! How far a move has come, for whoever waits: a bar on a terminal, now and then a line elsewhere.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Where a report goes.
pub type Tell<'a> = &'a mut dyn FnMut(&Progress);

/// How far it has come.
#[derive(Debug, Clone)]
pub struct Progress {
    /// What is being done: copying, comparing.
    pub doing: &'static str,
    /// With which table.
    pub table: &'static str,
    /// Rows done, of [`Progress::of`].
    pub rows: u64,
    /// Rows to do, as they were counted beforehand.
    pub of: u64,
}

impl Progress {
    /// Of a hundred, at most 100.
    #[must_use]
    pub fn percent(&self) -> u64 {
        self.rows.saturating_mul(100).checked_div(self.of).unwrap_or(100).min(100)
    }
}

/// The reports of one move.
pub(super) struct Told<'a> {
    tell: Tell<'a>,
    progress: Progress,
}

impl<'a> Told<'a> {
    pub(super) fn new(tell: Tell<'a>, of: u64) -> Self {
        Self { tell, progress: Progress { doing: "copying", table: "", rows: 0, of } }
    }

    pub(super) fn begins(&mut self, doing: &'static str) {
        self.progress = Progress { doing, table: "", rows: 0, of: self.progress.of };
        (self.tell)(&self.progress);
    }

    pub(super) fn rows(&mut self, table: &'static str, rows: u64) {
        self.progress.table = table;
        self.progress.rows += rows;
        (self.tell)(&self.progress);
    }
}

/// Reports on standard error.
#[derive(Debug)]
pub struct Bar {
    is_terminal: bool,
    last: Option<Instant>,
    was_doing: &'static str,
}

impl Default for Bar {
    fn default() -> Self {
        Self { is_terminal: std::io::stderr().is_terminal(), last: None, was_doing: "" }
    }
}

impl Bar {
    /// Shows a report, if the last one is old enough.
    pub fn show(&mut self, progress: &Progress) {
        let pause = Duration::from_millis(if self.is_terminal { 100 } else { 5_000 });
        let is_new = self.was_doing != progress.doing;
        if !is_new && self.last.is_some_and(|last| last.elapsed() < pause) {
            return;
        }
        (self.last, self.was_doing) = (Some(Instant::now()), progress.doing);
        let Progress { doing, table, rows, of } = progress;
        let percent = progress.percent();
        let doing = format!("{doing} {table}");
        let doing = doing.trim_end();
        let mut err = std::io::stderr().lock();
        let _nobody_looks = if self.is_terminal {
            let filled = usize::try_from(percent / 4).unwrap_or(0);
            let bar = format!("{}{}", "#".repeat(filled), ".".repeat(25_usize.saturating_sub(filled)));
            write!(err, "\r\x1b[K[{bar}] {percent:>3} % {doing} {rows}/{of}").and_then(|()| err.flush())
        } else {
            writeln!(err, "{doing}: {rows} of {of} rows, {percent} %")
        };
    }

    /// The end of the last line.
    pub fn end(&self) {
        if self.is_terminal {
            eprintln!();
        }
    }
}

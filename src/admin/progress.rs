//! How far a long command has come, for whoever watches: one line on a terminal, nothing anywhere else.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_millis(250);

/// A line that is written over itself.
#[derive(Debug)]
pub(super) struct Progress {
    what: &'static str,
    /// Of the whole, where it is known.
    total_bytes: Option<u64>,
    started: Instant,
    /// `None` where nobody watches.
    shown: Option<Instant>,
}

impl Progress {
    pub(super) fn new(what: &'static str, total_bytes: Option<u64>) -> Self {
        let now = Instant::now();
        Self { what, total_bytes, started: now, shown: std::io::stderr().is_terminal().then_some(now) }
    }

    /// So many rows are done, and so many bytes read.
    pub(super) fn tell(&mut self, rows: u64, bytes: u64) {
        let Some(shown) = &mut self.shown else { return };
        if shown.elapsed() < EVERY {
            return;
        }
        *shown = Instant::now();
        self.show(rows, bytes, "\r");
    }

    /// It is over.
    pub(super) fn end(self, rows: u64, bytes: u64) {
        if self.shown.is_some() {
            self.show(rows, bytes, "\n");
        }
    }

    /// Rows a second since the start.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate for people to read"
    )]
    pub(super) fn rate(&self, rows: u64) -> u64 {
        (rows as f64 / self.started.elapsed().as_secs_f64().max(0.001)) as u64
    }

    fn show(&self, rows: u64, bytes: u64, end: &str) {
        let share = match self.total_bytes {
            Some(total @ 1..) => bar(bytes.min(total).saturating_mul(100) / total),
            _ => String::new(),
        };
        let rate = self.rate(rows);
        // A terminal that is gone is told nothing.
        let _gone = write!(std::io::stderr(), "\r{} {share}{rows} rows, {rate}/s   {end}", self.what);
    }
}

/// `[######              ]  30% `
fn bar(percent: u64) -> String {
    let full = usize::try_from(percent.min(100) / 5).unwrap_or(0);
    format!("[{:<20}] {percent:>3}% ", "#".repeat(full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_at_each_of_its_ends() {
        assert_eq!(bar(0), format!("[{}]   0% ", " ".repeat(20)));
        assert_eq!(bar(50), format!("[{}{}]  50% ", "#".repeat(10), " ".repeat(10)));
        assert_eq!(bar(100), format!("[{}] 100% ", "#".repeat(20)));
    }
}

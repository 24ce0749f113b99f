//! What an audit saw.

use std::fmt;

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where: a partition's number; `None` for the summary.
    pub partition: Option<u32>,
    /// What: `item x, shard 3`, `workshop y`.
    pub what: String,
    /// What it is and what it should be.
    pub why: String,
}

/// What was looked at, and what is wrong.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Item names, once a partition.
    pub items: u64,
    /// Counters without members, once a partition; they are among the items.
    pub plain_counters: u64,
    /// Ids of adds that are remembered.
    pub add_ids: u64,
    /// Membership rows.
    pub memberships: u64,
    /// Shard counters.
    pub counters: u64,
    /// Counters that the roll-up has not carried yet; the summary may differ there.
    pub pending: u64,
    /// Rows of the summary.
    pub summary_rows: u64,
    /// Workshops.
    pub workshops: u64,
    /// Attempts.
    pub attempts: u64,
    /// Sets of reservations.
    pub sets: u64,
    /// Rooms with a durable history.
    pub rooms: u64,
    /// Messages of theirs.
    pub messages: u64,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

impl Report {
    pub(super) fn wrong(
        &mut self,
        partition: impl Into<Option<u32>>,
        what: impl Into<String>,
        why: impl Into<String>,
    ) {
        self.findings.push(Finding { partition: partition.into(), what: what.into(), why: why.into() });
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = self.items - self.plain_counters;
        writeln!(
            f,
            "likes:        {items} items, {} memberships, {} shard counters",
            self.memberships, self.counters
        )?;
        if self.plain_counters > 0 {
            writeln!(f, "counters:     {} counters, {} ids remembered", self.plain_counters, self.add_ids)?;
        }
        writeln!(f, "summary:      {} items, {} counters not carried yet", self.summary_rows, self.pending)?;
        write!(f, "reservations: {} workshops, {} attempts", self.workshops, self.attempts)?;
        match self.sets {
            0 => writeln!(f)?,
            sets => writeln!(f, ", {sets} sets")?,
        }
        writeln!(f, "rooms:        {} rooms, {} messages kept", self.rooms, self.messages)?;
        for Finding { partition, what, why } in &self.findings {
            match partition {
                Some(partition) => writeln!(f, "WRONG partition {partition}, {what}: {why}")?,
                None => writeln!(f, "WRONG summary, {what}: {why}")?,
            }
        }
        match self.findings.len() {
            0 => writeln!(f, "PASS: nothing is wrong"),
            wrong => writeln!(f, "FAIL: {wrong} wrong"),
        }
    }
}

//! Whether the files hold what was answered: every row and every count.

use std::collections::HashMap;
use std::path::PathBuf;

use rusqlite::Connection;

use crate::Failure;
use crate::workload::Workload;

/// Numbers by the name of their key.
type Counts = HashMap<String, i64>;

/// Each query gives names and numbers, which add up over the files.
const MEMBERS: &str = "SELECT name, count(*) FROM memberships_now JOIN items USING (item_id) GROUP BY name";
const COUNTERS: &str =
    "SELECT name, sum(members) FROM shard_counters_now JOIN items USING (item_id) GROUP BY name";
const ATTEMPTS: &str =
    "SELECT name, count(*) FROM attempts_now JOIN workshops USING (workshop_id) GROUP BY name";
const DECISIONS: &str = "SELECT name, accepted_requests + rejected_requests FROM workshops";
const SEATS_TAKEN: &str = "SELECT name, reserved FROM workshops";
const SEATS_GIVEN: &str = "SELECT name, sum(seats) FROM attempts_now JOIN workshops USING (workshop_id)
                           WHERE status = 'accepted' GROUP BY name";

/// Every request was new and for one like or one seat.
pub fn check(files: &[PathBuf], workload: Workload, requests: u64) -> Result<(), Failure> {
    let mut asked = Counts::new();
    for number in 0..requests {
        *asked.entry(workload.key_name(workload.key_of_request(number))).or_default() += 1;
    }
    let capacity = i64::from(workload.capacity());
    let given: Counts = asked.iter().map(|(name, asked)| (name.clone(), *asked.min(&capacity))).collect();
    let expected = match workload {
        Workload::Likes { .. } => vec![(MEMBERS, &asked), (COUNTERS, &asked)],
        Workload::Reservations { .. } => {
            vec![(ATTEMPTS, &asked), (DECISIONS, &asked), (SEATS_TAKEN, &given), (SEATS_GIVEN, &given)]
        }
    };
    for (query, expected) in expected {
        let stored = add_up(files, query)?;
        if stored != *expected {
            let total = |counts: &Counts| counts.values().sum::<i64>();
            let (stored, expected) = (total(&stored), total(expected));
            return Err(format!("{}: {query}: {stored} in all, expected {expected}", workload.name()).into());
        }
    }
    Ok(())
}

fn add_up(files: &[PathBuf], query: &str) -> Result<Counts, Failure> {
    let mut counts = Counts::new();
    for file in files {
        let connection = Connection::open(file)?;
        let mut select = connection.prepare(query)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            *counts.entry(row.get(0)?).or_default() += row.get::<_, i64>(1)?;
        }
    }
    Ok(counts)
}

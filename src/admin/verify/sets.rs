//! For every set: what its home has decided beside what its lines have done, over all partitions. A set that is taken
//! has all its lines, one that is not has none, and nothing is held for a set that nobody knows.

use std::collections::{BTreeMap, BTreeSet};

use super::{Place, Report};
use crate::reservations::sets::driver::home_of_set;
use crate::store::Error;

/// What the files say, gathered one by one.
#[derive(Debug, Default)]
pub(super) struct SetsAudit {
    sets: BTreeMap<String, Set>,
    /// By set, and workshop.
    lines: BTreeMap<(String, String), Line>,
    /// Workshops that are there.
    workshops: BTreeSet<(String, i64)>,
}

#[derive(Debug)]
struct Set {
    home: u32,
    state: String,
    finished: bool,
    /// By workshop: seats, and which of the workshops of this name did what was decided.
    wanted: BTreeMap<String, (i64, Option<i64>)>,
}

#[derive(Debug)]
struct Line {
    partition: u32,
    workshop_id: i64,
    state: String,
    seats: i64,
}

impl SetsAudit {
    pub(super) fn look_at(&mut self, place: &Place<'_>, report: &mut Report) -> Result<(), Error> {
        let mut sets = place.connection.prepare("SELECT request_id, state, finished FROM sets")?;
        let mut rows = sets.query([])?;
        while let Some(row) = rows.next()? {
            let (id, state): (String, String) = (row.get(0)?, row.get(1)?);
            report.sets += 1;
            let home = home_of_set(&id, place.manifest.partitions);
            if home != place.partition {
                report.wrong(place.partition, format!("set {id}"), format!("it belongs on partition {home}"));
            }
            let set =
                Set { home: place.partition, state, finished: row.get(2)?, wanted: BTreeMap::default() };
            self.sets.insert(id, set);
        }
        let mut lines =
            place.connection.prepare("SELECT request_id, workshop, seats, workshop_id FROM set_lines")?;
        let mut rows = lines.query([])?;
        while let Some(row) = rows.next()? {
            let id: String = row.get(0)?;
            match self.sets.get_mut(&id).filter(|set| set.home == place.partition) {
                Some(set) => {
                    set.wanted.insert(row.get(1)?, (row.get(2)?, row.get(3)?));
                }
                None => report.wrong(place.partition, format!("set {id}"), "it has lines and is not there"),
            }
        }
        let mut bookings = place.connection.prepare(
            "SELECT b.request_id, w.name, b.workshop_id, b.state, b.seats
             FROM bookings AS b JOIN workshops AS w USING (workshop_id) WHERE b.of_set",
        )?;
        let mut rows = bookings.query([])?;
        while let Some(row) = rows.next()? {
            let line = Line {
                partition: place.partition,
                workshop_id: row.get(2)?,
                state: row.get(3)?,
                seats: row.get(4)?,
            };
            self.lines.insert((row.get(0)?, row.get(1)?), line);
        }
        let mut workshops = place.connection.prepare("SELECT name, workshop_id FROM workshops")?;
        let mut rows = workshops.query([])?;
        while let Some(row) = rows.next()? {
            self.workshops.insert((row.get(0)?, row.get(1)?));
        }
        Ok(())
    }

    pub(super) fn audit(&self, report: &mut Report) {
        for ((id, workshop), line) in &self.lines {
            let wanted = self.sets.get(id).and_then(|set| Some((set, set.wanted.get(workshop)?)));
            let Some((set, (seats, _))) = wanted else {
                let why = format!("{workshop} has a line of it, and no such set asked for one");
                report.wrong(line.partition, format!("set {id}"), why);
                continue;
            };
            if !fits(set, &line.state) {
                let progress = if set.finished { "" } else { ", unfinished" };
                let why = format!("it is {}{progress}, its line in {workshop} is {}", set.state, line.state);
                report.wrong(line.partition, format!("set {id}"), why);
            }
            if line.seats != *seats {
                let why = format!("its line in {workshop} has {} seats, not {seats}", line.seats);
                report.wrong(line.partition, format!("set {id}"), why);
            }
        }
        for (id, set) in &self.sets {
            if set.wanted.is_empty() {
                report.wrong(set.home, format!("set {id}"), "it has no lines");
            }
            // A refused one may have asked nobody; of a deleted workshop nothing is left.
            let must_have_lines = set.finished && set.state != "refused";
            for (workshop, (_, key)) in set.wanted.iter().filter(|_| must_have_lines) {
                let Some(key) = key.filter(|key| self.workshops.contains(&(workshop.clone(), *key))) else {
                    continue;
                };
                let line = self.lines.get(&(id.clone(), workshop.clone()));
                if line.is_none_or(|line| line.workshop_id != key) {
                    report.wrong(set.home, format!("set {id}"), format!("it has no line in {workshop}"));
                }
            }
        }
    }
}

/// Whether a line may be in this state, given what its set is and whether that was carried to all lines.
fn fits(set: &Set, line: &str) -> bool {
    let (done, on_the_way): (&[&str], &[&str]) = match set.state.as_str() {
        "pending" => (&[], &["held", "rejected"]),
        "held" => (&["held"], &["held"]),
        "confirmed" => (&["confirmed"], &["held", "confirmed"]),
        "cancelled" => (&["cancelled"], &["held", "confirmed", "cancelled"]),
        "expired" => (&["expired"], &["held", "expired"]),
        "retaking" => (&[], &["held", "expired"]),
        "refused" => (&["cancelled", "rejected"], &["held", "cancelled", "rejected"]),
        _ => (&[], &[]),
    };
    let may_be = if set.finished { done } else { on_the_way };
    may_be.contains(&line)
}

//! The journal: what a batch changed in one row, and its way into the tables.

use std::sync::LazyLock;

use rusqlite::Connection;
use serde::Serializer;

use super::SqliteStore;
use super::filter::Filter;
use super::pending::{LikedAt, Member, Pending, Request, Settling};
use super::rows::Insert;
use crate::store::Error;
use crate::store::bookings::Reason;
use crate::store::likes::{Counter, CounterKey, ItemKey, Membership};
use crate::store::reservations::{Attempt, AttemptKey, Status, WorkshopKey};

/// A membership in the journal: user, item id, when; null when it is gone.
type MemberRow<'a> = (&'a str, i64, LikedAt);
/// A counter in the journal: shard, item id, members, base, version.
type CounterRow = (u32, i64, i64, i64, i64);
/// An attempt in the journal: workshop id, request id, seats, status, reserved just after, when, why not.
type AttemptRow<'a> = (i64, &'a str, i64, &'a str, i64, i64, Option<&'a str>);

/// About what a row takes in the journal.
const BYTES_A_ROW: usize = 64;
/// Rows that settle for each change that a batch brings: more than one, so that a generation is in its table
/// before the next is full.
const SETTLE_PER_CHANGE: usize = 2;
/// Rows of the journal that go with each that comes, once they are in the tables; the oldest first, so that what is left
/// always tells the newest state.
const TRIMMED_PER_BATCH: u32 = 4;

/// What the journal holds, over tables whose keys `filter` knows, and its newest row.
pub(super) fn load(connection: &Connection, filter: Filter) -> Result<(Pending, i64), Error> {
    let mut pending = Pending::over(filter);
    let mut last_seq = 0;
    let mut select =
        connection.prepare("SELECT seq, memberships, counters, attempts FROM journal ORDER BY seq")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        last_seq = row.get(0)?;
        let text = |column| row.get::<_, String>(column);
        for (user, item, liked_at) in parse::<Vec<(String, i64, LikedAt)>>(&text(1)?)? {
            pending.set_member(Membership { user: &user, item: ItemKey(item) }, liked_at);
        }
        for (shard, item, members, base, version) in parse::<Vec<CounterRow>>(&text(2)?)? {
            pending
                .set_counter(CounterKey { shard, item: ItemKey(item) }, Counter { members, base, version });
        }
        for row in parse::<Vec<AttemptRow<'_>>>(&text(3)?)? {
            let (workshop, request, seats, status, reserved_after, decided_at_ms, reason) = row;
            let status =
                if status == Status::Accepted.as_str() { Status::Accepted } else { Status::Rejected };
            let reason = reason.and_then(Reason::parse);
            let attempt = Attempt { seats, status, reserved_after, decided_at_ms, reason };
            pending.set_attempt(AttemptKey { workshop: WorkshopKey(workshop), request }, attempt);
        }
    }
    pending.committed(usize::MAX, last_seq);
    Ok((pending, last_seq))
}

fn parse<'a, T: serde::Deserialize<'a>>(json: &'a str) -> Result<T, Error> {
    serde_json::from_str(json).map_err(|error| Error::Engine(format!("a row of the journal: {error}")))
}

fn json<T: serde::Serialize>(rows: impl Iterator<Item = T>) -> Result<String, Error> {
    let mut json = Vec::with_capacity(rows.size_hint().1.unwrap_or(0) * BYTES_A_ROW);
    let failed = |error: &dyn std::fmt::Display| Error::Engine(format!("writing the journal: {error}"));
    serde_json::Serializer::new(&mut json).collect_seq(rows).map_err(|error| failed(&error))?;
    String::from_utf8(json).map_err(|error| failed(&error))
}

fn member_row((key, liked_at): (&Member, LikedAt)) -> MemberRow<'_> {
    (&key.user, key.item.0, liked_at)
}

fn counter_row((key, counter): (&CounterKey, Counter)) -> CounterRow {
    (key.shard, key.item.0, counter.members, counter.base, counter.version)
}

fn attempt_row((key, attempt): (&Request, Attempt)) -> AttemptRow<'_> {
    (
        key.workshop.0,
        &key.request,
        attempt.seats,
        attempt.status.as_str(),
        attempt.reserved_after,
        attempt.decided_at_ms,
        attempt.reason.map(Reason::as_str),
    )
}

impl SqliteStore {
    /// Writes what the open transaction changed, and moves some of what earlier ones did into its table. Whether
    /// there was anything to write.
    pub(super) fn journal(&mut self, now_ms: i64) -> Result<bool, Error> {
        let touched = self.pending.touched();
        if touched == 0 {
            return Ok(false);
        }
        let memberships = json(self.pending.members.touched().map(member_row))?;
        let counters = json(self.pending.counters.touched().map(counter_row))?;
        let attempts = json(self.pending.attempts.touched().map(attempt_row))?;
        self.last_seq = self
            .connection
            .prepare_cached(
                "INSERT INTO journal (decided_at_ms, memberships, counters, attempts) VALUES (?1, ?2, ?3, ?4)",
            )?
            .insert((now_ms, memberships, counters, attempts))?;
        self.pending.is_journaled();
        let Settling { members, attempts, counters } = self.pending.settle(touched * SETTLE_PER_CHANGE);
        settle_members(&self.connection, &members)?;
        settle_attempts(&self.connection, &attempts)?;
        settle_counters(&self.connection, &counters)?;
        if let Some(up_to) = self.pending.settled_up_to() {
            let mut delete = self.connection.prepare_cached(
                "DELETE FROM journal WHERE seq IN (SELECT seq FROM journal WHERE seq <= ?1 ORDER BY seq LIMIT ?2)",
            )?;
            if delete.execute((up_to, TRIMMED_PER_BATCH))? == 0 {
                self.pending.is_trimmed();
            }
        }
        Ok(true)
    }

    /// Brings the attempts of one page into their table, for whoever is about to read it there: those of `workshop` after
    /// `after`, `limit` of them at most. What else waits goes on waiting, so that a page costs what is on it. In their
    /// turn they are written again, which changes nothing.
    pub(super) fn settle_page(
        &mut self,
        workshop: WorkshopKey,
        after: &str,
        limit: usize,
    ) -> Result<(), Error> {
        let waiting = self.pending.attempts.recent();
        let mut page: Vec<_> =
            waiting.filter(|(key, _)| key.workshop == workshop && *key.request > *after).collect();
        if page.len() > limit {
            page.select_nth_unstable_by(limit, |(a, _), (b, _)| a.request.cmp(&b.request));
            page.truncate(limit);
        }
        page.sort_unstable_by(|(a, _), (b, _)| a.request.cmp(&b.request));
        settle_attempts(&self.connection, &page)
    }

    /// Brings these attempts of `workshop` into their table, those that wait.
    pub(super) fn settle_attempts_of(
        &mut self,
        workshop: WorkshopKey,
        requests: &[String],
    ) -> Result<(), Error> {
        let attempts = &self.pending.attempts;
        let rows = requests.iter().filter_map(|request| attempts.get_row(&AttemptKey { workshop, request }));
        settle_attempts(&self.connection, &rows.collect::<Vec<_>>())
    }

    /// Brings everything into its table and empties the journal: for whoever is about to look at a table as a
    /// whole or to delete from it.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        if self.pending.is_empty() && !self.pending.is_dirty() {
            return Ok(());
        }
        settle_members(&self.connection, &self.pending.members.everything())?;
        settle_attempts(&self.connection, &self.pending.attempts.everything())?;
        settle_counters(&self.connection, &self.pending.counters.everything())?;
        self.pending.clear();
        self.connection.execute_batch(
            "UPDATE identity SET clock_mark_ms = max(clock_mark_ms,
               coalesce((SELECT decided_at_ms FROM journal ORDER BY seq DESC LIMIT 1), 0));
             DELETE FROM journal",
        )?;
        Ok(())
    }
}

static MEMBERS: LazyLock<Insert> = LazyLock::new(|| {
    let on_conflict = "ON CONFLICT (user, item_id) DO UPDATE SET liked_at = excluded.liked_at";
    Insert::new("memberships (user, item_id, liked_at)", 3, on_conflict)
});

/// An attempt never changes: one that is in its table already has settled before a reload.
static ATTEMPTS: LazyLock<Insert> = LazyLock::new(|| {
    let into = "attempts (workshop_id, request_id, seats, status, reserved_after, decided_at_ms, reason)";
    Insert::new(into, 7, "ON CONFLICT DO NOTHING")
});

static COUNTERS: LazyLock<Insert> = LazyLock::new(|| {
    let on_conflict = "ON CONFLICT (shard, item_id) DO UPDATE
         SET members = excluded.members, base = excluded.base, version = excluded.version";
    Insert::new("shard_counters (shard, item_id, members, base, version)", 5, on_conflict)
});

fn settle_members(connection: &Connection, rows: &[(&Member, LikedAt)]) -> Result<(), Error> {
    let mut remove = connection.prepare_cached("DELETE FROM memberships WHERE user = ?1 AND item_id = ?2")?;
    for run in rows.chunk_by(|(_, a), (_, b)| a.is_some() == b.is_some()) {
        if run.first().is_some_and(|(_, liked_at)| liked_at.is_some()) {
            MEMBERS.execute(connection, run, |(key, liked_at), values| {
                values.add(&*key.user)?;
                values.add(key.item.0)?;
                values.add(liked_at)
            })?;
        } else {
            for (key, _) in run {
                remove.execute((&*key.user, key.item.0))?;
            }
        }
    }
    Ok(())
}

fn settle_attempts(connection: &Connection, rows: &[(&Request, Attempt)]) -> Result<(), Error> {
    ATTEMPTS.execute(connection, rows, |(key, attempt), values| {
        let (workshop, request, seats, status, reserved_after, decided_at_ms, reason) =
            attempt_row((key, *attempt));
        values.add(workshop)?;
        values.add(request)?;
        values.add(seats)?;
        values.add(status)?;
        values.add(reserved_after)?;
        values.add(decided_at_ms)?;
        values.add(reason)
    })?;
    Ok(())
}

fn settle_counters(connection: &Connection, rows: &[(&CounterKey, Counter)]) -> Result<(), Error> {
    COUNTERS.execute(connection, rows, |row, values| {
        let (shard, item, members, base, version) = counter_row(*row);
        values.add(shard)?;
        values.add(item)?;
        values.add(members)?;
        values.add(base)?;
        values.add(version)
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sqlite::PARTITION_SCHEMA;

    /// Whoever looks at table and journal together looks each row up in what the journal holds.
    #[test]
    fn no_view_searches_the_journal_for_each_row() {
        let connection = Connection::open_in_memory().unwrap();
        PARTITION_SCHEMA.steps.iter().for_each(|step| connection.execute_batch(step).unwrap());
        for view in ["memberships_now", "shard_counters_now", "attempts_now"] {
            let mut explain =
                connection.prepare(&format!("EXPLAIN QUERY PLAN SELECT * FROM {view}")).unwrap();
            let plan = explain.query_map([], |row| row.get(3)).unwrap();
            let plan: Vec<String> = plan.collect::<Result<_, _>>().unwrap();
            let joined: Vec<&String> = plan.iter().filter(|step| step.contains("LEFT-JOIN")).collect();
            assert!(joined.len() == 1 && joined[0].starts_with("SEARCH"), "{view}: {plan:?}");
        }
    }
}

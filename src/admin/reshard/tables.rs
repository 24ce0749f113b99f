//! Every table there is, and what a move does with it. A table that is not here stops a move: nothing is left behind
//! because nobody thought of it.
//!
//! Rows are read with names in the place of numbers, because a number means something in its own file only; they are
//! written with the numbers that the names have in the new one.

use xxhash_rust::xxh3::xxh3_64;

use crate::likes::types::{partition_of_shard, shard_of};
use crate::reservations::sets::driver::home_of_set;
use crate::reservations::types::partition_of_workshop;
use crate::rooms::recorder::partition_of_room;

/// Over how many shards and partitions data is spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// `likes.shards`
    pub shards: u32,
    /// `storage.partitions`
    pub partitions: u32,
}

/// What becomes of a table.
#[derive(Debug)]
pub(super) enum Fate {
    /// Its rows go where they now belong.
    Moved(Moved),
    /// Its rows are made as others need them.
    MadeOnDemand,
    /// Its rows are computed from those that were moved.
    Recomputed,
    /// Copied as it is.
    Copied,
    /// Written by whoever creates the file, or empty at rest.
    Own,
    /// Nothing needs it any more once the old files are left.
    LeftBehind,
}

/// How the rows of a table are read and written.
#[derive(Debug)]
pub(super) struct Moved {
    /// What a row's key says about its place.
    pub place: Place,
    /// The key: an expression.
    pub key: &'static str,
    /// The tables that are read: `t` is this one.
    pub from: &'static str,
    /// The order. An index has it: nothing is sorted. By the key first where there are many rows, so that those of all
    /// files are written in one order.
    pub order: &'static str,
    /// Columns that are numbers, with the expression that reads their name.
    pub numbers: &'static [(&'static str, &'static str, Number)],
    /// All other columns.
    pub columns: &'static [&'static str],
    /// Columns, after the others, that are added up where rows of two files become one. Without any, rows stay apart.
    pub added: &'static [&'static str],
    /// Columns, after those, of which the largest stays where rows become one.
    pub newest: &'static [&'static str],
}

/// How a key is placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A user's, on its shard.
    User,
    /// An item's share of what has no user: on the shard that its name hashes to.
    Item,
    /// A workshop's, by its name.
    Workshop,
    /// A set's, by its id.
    Set,
    /// A room's, by its name.
    Room,
}

/// Whose number a column is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    /// An item's. Made on demand.
    Item,
    /// A holder's. Made on demand.
    Holder,
    /// A workshop's, which is there.
    Workshop,
    /// A room's, which is there.
    Room,
    /// A booking's of the row's workshop, which is there.
    Booking,
    /// The shard that the key is placed on.
    Shard,
    /// A workshop's, perhaps of another partition and perhaps gone: `number name`.
    WorkshopAnywhere,
}

impl Place {
    /// Shard and partition of a key. The shard is 0 where there is none.
    pub(super) fn of(self, key: &str, layout: Layout) -> (u32, u32) {
        let partitions = layout.partitions;
        match self {
            Self::User | Self::Item => {
                let shard = shard_of(key, layout.shards);
                (shard, partition_of_shard(shard, partitions))
            }
            Self::Workshop => (0, partition_of_workshop(xxh3_64(key.as_bytes()), partitions)),
            Self::Set => (0, home_of_set(key, partitions)),
            Self::Room => {
                let partition = partition_of_room(key, usize::try_from(partitions).unwrap_or(usize::MAX));
                (0, u32::try_from(partition).unwrap_or(u32::MAX))
            }
        }
    }
}

impl Moved {
    /// The key, then every column that is written, in the order of [`Moved::write`].
    pub(super) fn read(&self) -> String {
        let numbers = self.numbers.iter().map(|(_, expression, _)| (*expression).to_owned());
        let columns = self.plain().map(|column| format!("t.{column}"));
        let all: Vec<String> = std::iter::once(self.key.to_owned()).chain(numbers).chain(columns).collect();
        format!("SELECT {} FROM {} ORDER BY {}", all.join(", "), self.from, self.order)
    }

    fn plain(&self) -> impl Iterator<Item = &'static str> {
        self.columns.iter().chain(self.added).chain(self.newest).copied()
    }

    /// The columns that are written, in order.
    pub(super) fn written(&self) -> Vec<&'static str> {
        self.numbers.iter().map(|(name, ..)| *name).chain(self.plain()).collect()
    }

    pub(super) fn write(&self, table: &str) -> String {
        let written = self.written();
        let places: Vec<String> = (1..=written.len()).map(|place| format!("?{place}")).collect();
        let insert = format!("INSERT INTO {table} ({}) VALUES ({})", written.join(", "), places.join(", "));
        if self.added.is_empty() {
            return insert;
        }
        let added = self.added.iter().map(|column| format!("{column} = {column} + excluded.{column}"));
        let newest = self.newest.iter().map(|column| format!("{column} = max({column}, excluded.{column})"));
        format!("{insert} ON CONFLICT DO UPDATE SET {}", added.chain(newest).collect::<Vec<_>>().join(", "))
    }
}

/// A holder's name. One who was forgotten has none, and stays one person all the same: a text that no name can be.
const HOLDER: &str = "coalesce(h.name, iif(t.holder_id IS NULL, NULL,
    char(1) || 'forgotten ' || (SELECT partition FROM identity) || ' ' || t.holder_id))";

/// The tables of a partition's file, in the order in which they are moved.
pub(super) const PARTITION: &[(&str, Fate)] = &[
    ("identity", Fate::Own),
    ("sqlite_sequence", Fate::Own),
    ("journal", Fate::Own),
    ("items", Fate::MadeOnDemand),
    ("holders", Fate::MadeOnDemand),
    (
        "memberships",
        Fate::Moved(Moved {
            place: Place::User,
            key: "t.user",
            // Rows of deleted items, which count no more, have no item.
            from: "memberships AS t CROSS JOIN items AS i ON i.item_id = t.item_id",
            order: "t.user, t.item_id",
            numbers: &[("item_id", "i.name", Number::Item)],
            columns: &["user", "liked_at"],
            added: &[],
            newest: &[],
        }),
    ),
    (
        "base_ledger",
        Fate::Moved(Moved {
            place: Place::Item,
            key: "i.name",
            from: "base_ledger AS t CROSS JOIN items AS i ON i.item_id = t.item_id",
            order: "t.shard, t.item_id, t.source",
            numbers: &[("shard", "NULL", Number::Shard), ("item_id", "i.name", Number::Item)],
            columns: &["source"],
            added: &["amount"],
            newest: &[],
        }),
    ),
    (
        "counter_requests",
        Fate::Moved(Moved {
            // An add's shard is found by its id as a user's is by its own.
            place: Place::User,
            key: "t.request_id",
            from: "counter_requests AS t CROSS JOIN items AS i ON i.item_id = t.item_id",
            order: "t.item_id, t.request_id",
            numbers: &[("item_id", "i.name", Number::Item)],
            columns: &["request_id", "amount", "added", "decided_at_ms"],
            added: &[],
            newest: &[],
        }),
    ),
    // Who likes an item is listed anew where it is to be listed.
    ("item_members", Fate::LeftBehind),
    ("item_index", Fate::LeftBehind),
    (
        "forgetting",
        Fate::Moved(Moved {
            place: Place::User,
            key: "t.person",
            from: "forgetting AS t",
            order: "t.forget_id",
            numbers: &[],
            columns: &["forget_id", "person", "policy", "begun_at_ms"],
            added: &[],
            newest: &[],
        }),
    ),
    (
        "forgotten",
        Fate::Moved(Moved {
            place: Place::User,
            key: "t.person",
            from: "forgotten AS t",
            order: "t.forget_id",
            numbers: &[],
            columns: &["forget_id", "person", "policy"],
            added: &["likes", "holders", "messages"],
            newest: &["at_ms"],
        }),
    ),
    ("shard_counters", Fate::Recomputed),
    ("version_floors", Fate::Recomputed),
    ("unswept_items", Fate::LeftBehind),
    // All deletions are finished before a move.
    ("applied_deletions", Fate::LeftBehind),
    (
        "workshops",
        Fate::Moved(Moved {
            place: Place::Workshop,
            key: "t.name",
            from: "workshops AS t",
            order: "t.name",
            numbers: &[],
            columns: &[
                "name",
                "capacity",
                "reserved",
                "overbooked",
                "accepted_requests",
                "rejected_requests",
                "accepted_seats",
                "version",
                "created_at_ms",
                "held",
                "waiting",
                "last_event",
                "max_seats_per_request",
                "max_seats_per_holder",
                "hold_ttl_ms",
                "waitlist_policy",
                "offer_ttl_ms",
                "waitlist_max_length",
                "opens_at_ms",
                "closes_at_ms",
                "rules_version",
                "offers_due_at_ms",
            ],
            added: &[],
            newest: &[],
        }),
    ),
    (
        "attempts",
        Fate::Moved(Moved {
            place: Place::Workshop,
            key: "w.name",
            // Rows of deleted workshops have none.
            from: "workshops AS w CROSS JOIN attempts AS t ON t.workshop_id = w.workshop_id",
            order: "w.name, t.request_id",
            numbers: &[("workshop_id", "w.name", Number::Workshop)],
            columns: &["request_id", "seats", "status", "reserved_after", "decided_at_ms", "reason"],
            added: &[],
            newest: &[],
        }),
    ),
    (
        "bookings",
        Fate::Moved(Moved {
            place: Place::Workshop,
            key: "w.name",
            from: "bookings AS t CROSS JOIN workshops AS w ON w.workshop_id = t.workshop_id
                   LEFT JOIN holders AS h ON h.holder_id = t.holder_id",
            // As they came, which is how they lie.
            order: "t.booking_id",
            numbers: &[("workshop_id", "w.name", Number::Workshop), ("holder_id", HOLDER, Number::Holder)],
            columns: &[
                "request_id",
                "hold",
                "ttl_ms",
                "waitlist",
                "replaces",
                "queued",
                "state",
                "seats",
                "taken",
                "since_ms",
                "expires_at_ms",
                "place",
                "of_set",
                "set_ends_at_ms",
                "set_round",
            ],
            added: &[],
            newest: &[],
        }),
    ),
    (
        "events",
        Fate::Moved(Moved {
            place: Place::Workshop,
            key: "w.name",
            from: "workshops AS w CROSS JOIN events AS t ON t.workshop_id = w.workshop_id",
            order: "w.name, t.seq",
            numbers: &[
                ("workshop_id", "w.name", Number::Workshop),
                ("booking_id", "iif(t.booking_id IS NULL, NULL, t.request_id)", Number::Booking),
            ],
            columns: &["seq", "at_ms", "kind", "request_id", "seats", "reserved", "reason", "expires_at_ms"],
            added: &[],
            newest: &[],
        }),
    ),
    (
        "workshop_tombstones",
        Fate::Moved(Moved {
            place: Place::Workshop,
            key: "t.name",
            from: "workshop_tombstones AS t",
            order: "t.name",
            numbers: &[],
            columns: &["name", "deleted_at_ms"],
            added: &[],
            newest: &[],
        }),
    ),
    ("unswept_workshops", Fate::LeftBehind),
    (
        "sets",
        Fate::Moved(Moved {
            place: Place::Set,
            key: "t.request_id",
            from: "sets AS t LEFT JOIN holders AS h ON h.holder_id = t.holder_id",
            order: "t.request_id",
            numbers: &[("holder_id", HOLDER, Number::Holder)],
            columns: &[
                "request_id",
                "hold",
                "ttl_ms",
                "default_ttl_ms",
                "state",
                "round",
                "finished",
                "begun_at_ms",
                "expires_at_ms",
                "reason",
                "refused_by",
                "version",
            ],
            added: &[],
            newest: &[],
        }),
    ),
    (
        "set_lines",
        Fate::Moved(Moved {
            place: Place::Set,
            key: "t.request_id",
            from: "set_lines AS t",
            order: "t.request_id, t.workshop",
            numbers: &[(
                "workshop_id",
                "iif(t.workshop_id IS NULL, NULL, t.workshop_id || ' ' || t.workshop)",
                Number::WorkshopAnywhere,
            )],
            columns: &["request_id", "workshop", "seats"],
            added: &[],
            newest: &[],
        }),
    ),
    (
        "rooms",
        Fate::Moved(Moved {
            place: Place::Room,
            key: "t.name",
            from: "rooms AS t",
            order: "t.name",
            numbers: &[],
            columns: &["name", "epoch", "last_offset"],
            added: &[],
            newest: &[],
        }),
    ),
    (
        "room_messages",
        Fate::Moved(Moved {
            place: Place::Room,
            key: "r.name",
            from: "rooms AS r CROSS JOIN room_messages AS t ON t.room_id = r.room_id",
            order: "r.name, t.offset",
            numbers: &[("room_id", "r.name", Number::Room)],
            columns: &["offset", "at_ms", "bytes", "user", "message_id", "kind", "body"],
            added: &[],
            newest: &[],
        }),
    ),
];

/// The tables of the summary's file.
pub(super) const SUMMARY: &[(&str, Fate)] = &[
    ("identity", Fate::Own),
    ("summary", Fate::Recomputed),
    ("watermarks", Fate::Recomputed),
    ("progress", Fate::Copied),
    ("history", Fate::Copied),
    ("history_since", Fate::Copied),
    ("trending", Fate::Copied),
    ("trending_missed", Fate::Copied),
    // Empty: all deletions are finished before a move.
    ("deletions", Fate::LeftBehind),
];

/// The tables of a partition's file whose rows are moved.
pub(super) fn moved() -> impl Iterator<Item = (&'static str, &'static Moved)> {
    PARTITION.iter().filter_map(|(name, fate)| match fate {
        Fate::Moved(moved) => Some((*name, moved)),
        _ => None,
    })
}

/// The tables of the summary's file that are copied.
pub(super) fn copied() -> impl Iterator<Item = &'static str> {
    SUMMARY.iter().filter(|(_, fate)| matches!(fate, Fate::Copied)).map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rusqlite::Connection;

    use super::*;
    use crate::store::sqlite::PARTITION_SCHEMA;
    use crate::store::sqlite::open::Schema;
    use crate::store::sqlite::summary::SUMMARY_SCHEMA;

    fn empty(schema: &Schema) -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        schema.steps.iter().for_each(|step| connection.execute_batch(step).unwrap());
        connection
    }

    fn texts(connection: &Connection, sql: &str) -> Vec<String> {
        let mut select = connection.prepare(sql).unwrap();
        select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    /// A table that is added to a schema is added here: what becomes of it when data is moved?
    #[test]
    fn a_move_knows_every_table() {
        for (schema, known) in [(PARTITION_SCHEMA, PARTITION), (SUMMARY_SCHEMA, SUMMARY)] {
            let tables = texts(&empty(&schema), "SELECT name FROM sqlite_schema WHERE type = 'table'");
            let known: BTreeSet<String> = known.iter().map(|(name, _)| (*name).to_owned()).collect();
            assert_eq!(tables.into_iter().collect::<BTreeSet<_>>(), known);
        }
    }

    /// A column that is added is moved, too: all but a row's own number, which is new in each file.
    #[test]
    fn a_move_carries_every_column() {
        let own = [
            "items.item_id",
            "holders.holder_id",
            "workshops.workshop_id",
            "bookings.booking_id",
            "rooms.room_id",
        ];
        let file = empty(&PARTITION_SCHEMA);
        for (table, moved) in moved() {
            let columns = texts(&file, &format!("SELECT name FROM pragma_table_info('{table}')"));
            let moves = |column: &String| !own.contains(&format!("{table}.{column}").as_str());
            let columns: BTreeSet<String> = columns.into_iter().filter(moves).collect();
            let written: BTreeSet<String> = moved.written().into_iter().map(str::to_owned).collect();
            assert_eq!(columns, written, "{table}");
            file.prepare(&moved.write(table)).unwrap();
        }
    }

    /// Millions of rows are read in an order that an index has.
    #[test]
    fn nothing_is_sorted() {
        let file = empty(&PARTITION_SCHEMA);
        for (table, moved) in moved() {
            let mut select = file.prepare(&format!("EXPLAIN QUERY PLAN {}", moved.read())).unwrap();
            let plan: Vec<String> =
                select.query_map([], |row| row.get(3)).unwrap().map(Result::unwrap).collect();
            assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{table}: {plan:?}");
        }
    }
}

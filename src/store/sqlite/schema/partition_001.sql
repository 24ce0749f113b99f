-- One partition: the shards and workshops placed on it.

CREATE TABLE identity (
  singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
  data_id TEXT NOT NULL,               -- the data directory's id: files don't move between directories
  partition INTEGER NOT NULL,          -- nor between places in one
  clock_mark_ms INTEGER NOT NULL       -- the latest time that a decision was stored at
) STRICT;

-- Item names, interned. AUTOINCREMENT: a deleted item's id never comes back.
CREATE TABLE items (
  item_id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE
) STRICT;

-- Who likes what. A user's shard is a function of the user, so it is not stored.
CREATE TABLE memberships (
  user TEXT NOT NULL,
  item_id INTEGER NOT NULL,
  liked_at INTEGER NOT NULL,           -- seconds since 1970
  PRIMARY KEY (user, item_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE shard_counters (
  shard INTEGER NOT NULL,
  item_id INTEGER NOT NULL,
  members INTEGER NOT NULL CHECK (members >= 0),
  base INTEGER NOT NULL DEFAULT 0,     -- the sum of base_ledger
  version INTEGER NOT NULL,            -- the shard's version when this counter last changed
  PRIMARY KEY (shard, item_id)
) STRICT, WITHOUT ROWID;

-- The roll-up reads what is newer than its watermark.
CREATE INDEX shard_counters_by_version ON shard_counters (shard, version);

-- A shard's version never falls, though the counters that carried it may be deleted.
CREATE TABLE version_floors (
  shard INTEGER PRIMARY KEY,
  version INTEGER NOT NULL
) STRICT;

-- Where likes without a member come from, so that an audit can recompute base from its own source.
CREATE TABLE base_ledger (
  shard INTEGER NOT NULL,
  item_id INTEGER NOT NULL,
  source TEXT NOT NULL,                -- an import's id
  amount INTEGER NOT NULL,
  PRIMARY KEY (shard, item_id, source)
) STRICT, WITHOUT ROWID;

-- Deleted items whose membership rows are not swept yet. Those rows count no more.
CREATE TABLE unswept_items (
  item_id INTEGER PRIMARY KEY
) STRICT;

-- Deletions of items that this partition has done. One that failed elsewhere is sent again until all have
-- done it, and must not take likes that came in between.
CREATE TABLE applied_deletions (
  deletion INTEGER PRIMARY KEY
) STRICT;

CREATE TABLE workshops (
  workshop_id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  capacity INTEGER NOT NULL CHECK (capacity >= 0),
  reserved INTEGER NOT NULL,
  overbooked INTEGER NOT NULL DEFAULT 0 CHECK (overbooked >= 0),
  accepted_requests INTEGER NOT NULL,
  rejected_requests INTEGER NOT NULL,
  accepted_seats INTEGER NOT NULL,
  version INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  CHECK (reserved BETWEEN 0 AND capacity + overbooked)
) STRICT;

-- The first decision on each request id, which every replay repeats.
CREATE TABLE attempts (
  workshop_id INTEGER NOT NULL,
  request_id TEXT NOT NULL,
  seats INTEGER NOT NULL CHECK (seats > 0),
  status TEXT NOT NULL CHECK (status IN ('accepted', 'rejected')),
  reserved_after INTEGER NOT NULL,
  decided_at_ms INTEGER NOT NULL,
  PRIMARY KEY (workshop_id, request_id)
) STRICT, WITHOUT ROWID;

-- The roll-up's own file: each item's total, carried together from the shards.

CREATE TABLE identity (
  singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
  data_id TEXT NOT NULL
) STRICT;

CREATE TABLE summary (
  item TEXT PRIMARY KEY,
  total INTEGER NOT NULL,
  version INTEGER NOT NULL,            -- the roll-up run that last changed it
  parts TEXT NOT NULL                  -- JSON array: what each shard adds, by shard number
) STRICT, WITHOUT ROWID;

-- How far each shard has been carried. Stored with the totals that it speaks of, in one transaction.
CREATE TABLE watermarks (
  shard INTEGER PRIMARY KEY,
  version INTEGER NOT NULL
) STRICT;

CREATE TABLE progress (
  singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
  run INTEGER NOT NULL,                -- the last run that changed something
  as_of_ms INTEGER NOT NULL            -- the shards were read at this time
) STRICT;

INSERT INTO progress (singleton, run, as_of_ms) VALUES (1, 0, 0);

-- Items being deleted: noted before the first partition hears of it, so that a restart finishes the work.
CREATE TABLE deletions (
  item TEXT PRIMARY KEY,
  deletion INTEGER NOT NULL            -- random: partitions do each one once
) STRICT, WITHOUT ROWID;

-- Recent changes, one row a batch, before they reach their tables. A membership that goes straight to its
-- table dirties a page of its own; here a whole batch shares one, and many batches reach the tables together,
-- in the order of the keys. What stands here is newer than what stands in a table.
CREATE TABLE journal (
  seq INTEGER PRIMARY KEY,
  decided_at_ms INTEGER NOT NULL,
  memberships TEXT NOT NULL,   -- [[user, item_id, liked_at or null when gone], ...]
  counters TEXT NOT NULL,      -- [[shard, item_id, members, base, version], ...]
  attempts TEXT NOT NULL       -- [[workshop_id, request_id, seats, status, reserved_after, decided_at_ms, reason], ...]
) STRICT;

-- Tables and journal together, for whoever looks at the file.

CREATE VIEW memberships_now AS
  WITH latest AS MATERIALIZED (
    SELECT r.value ->> 0 AS user, r.value ->> 1 AS item_id, r.value ->> 2 AS liked_at, max(seq)
    FROM journal, json_each(journal.memberships) AS r GROUP BY 1, 2)
  SELECT m.user, m.item_id, m.liked_at
  FROM memberships AS m LEFT JOIN latest AS l ON l.user = m.user AND l.item_id = m.item_id
  WHERE l.user IS NULL
  UNION ALL SELECT user, item_id, liked_at FROM latest WHERE liked_at IS NOT NULL;

CREATE VIEW shard_counters_now AS
  WITH latest AS MATERIALIZED (
    SELECT r.value ->> 0 AS shard, r.value ->> 1 AS item_id, r.value ->> 2 AS members, r.value ->> 3 AS base,
           r.value ->> 4 AS version, max(seq)
    FROM journal, json_each(journal.counters) AS r GROUP BY 1, 2)
  SELECT c.shard, c.item_id, c.members, c.base, c.version
  FROM shard_counters AS c LEFT JOIN latest AS l ON l.shard = c.shard AND l.item_id = c.item_id
  WHERE l.shard IS NULL
  UNION ALL SELECT shard, item_id, members, base, version FROM latest;

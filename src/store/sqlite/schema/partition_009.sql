-- Tables and journal together, as before. Columns of the journal now say of which type they are: without that the engine finds
-- no index for them, and searched the whole journal for each row of a table.

DROP VIEW memberships_now;
CREATE VIEW memberships_now AS
  WITH latest AS MATERIALIZED (
    SELECT CAST(r.value ->> 0 AS TEXT) AS user, CAST(r.value ->> 1 AS INTEGER) AS item_id, r.value ->> 2 AS liked_at,
           max(seq)
    FROM journal, json_each(journal.memberships) AS r GROUP BY 1, 2)
  SELECT m.user, m.item_id, m.liked_at
  FROM memberships AS m LEFT JOIN latest AS l ON l.user = m.user AND l.item_id = m.item_id
  WHERE l.user IS NULL
  UNION ALL SELECT user, item_id, liked_at FROM latest WHERE liked_at IS NOT NULL;

DROP VIEW shard_counters_now;
CREATE VIEW shard_counters_now AS
  WITH latest AS MATERIALIZED (
    SELECT CAST(r.value ->> 0 AS INTEGER) AS shard, CAST(r.value ->> 1 AS INTEGER) AS item_id, r.value ->> 2 AS members,
           r.value ->> 3 AS base, r.value ->> 4 AS version, max(seq)
    FROM journal, json_each(journal.counters) AS r GROUP BY 1, 2)
  SELECT c.shard, c.item_id, c.members, c.base, c.version
  FROM shard_counters AS c LEFT JOIN latest AS l ON l.shard = c.shard AND l.item_id = c.item_id
  WHERE l.shard IS NULL
  UNION ALL SELECT shard, item_id, members, base, version FROM latest;

-- An attempt never changes, and may be in both for a moment.
DROP VIEW attempts_now;
CREATE VIEW attempts_now AS
  WITH pending AS MATERIALIZED (
    SELECT CAST(r.value ->> 0 AS INTEGER) AS workshop_id, CAST(r.value ->> 1 AS TEXT) AS request_id,
           r.value ->> 2 AS seats, r.value ->> 3 AS status, r.value ->> 4 AS reserved_after,
           r.value ->> 5 AS decided_at_ms, r.value ->> 6 AS reason
    FROM journal, json_each(journal.attempts) AS r)
  SELECT a.workshop_id, a.request_id, a.seats, a.status, a.reserved_after, a.decided_at_ms, a.reason
  FROM attempts AS a LEFT JOIN pending AS p ON p.workshop_id = a.workshop_id AND p.request_id = a.request_id
  WHERE p.request_id IS NULL
  UNION ALL SELECT workshop_id, request_id, seats, status, reserved_after, decided_at_ms, reason FROM pending;

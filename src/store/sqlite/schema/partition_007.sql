-- Counters without members: views, plays, downloads. A counter is an item that nobody can like: its name begins with
-- U+0001, which no item's can; what its shards count is base alone, and base_ledger has it once more (source 'adds').

-- The ids of adds and what was decided on them first, for as long as they are remembered.
CREATE TABLE counter_requests (
  item_id INTEGER NOT NULL,
  request_id TEXT NOT NULL,
  amount INTEGER NOT NULL,
  added INTEGER NOT NULL CHECK (added IN (0, 1)), -- 0: refused, it would have gone beyond the shard's share
  decided_at_ms INTEGER NOT NULL,
  PRIMARY KEY (item_id, request_id)
) STRICT, WITHOUT ROWID;

-- What is remembered no more, oldest first.
CREATE INDEX counter_requests_by_age ON counter_requests (decided_at_ms);

-- Sets: several workshops at once, all or none. A set lives on the partition of its id, its home, and its lines are
-- bookings in their workshops.

-- A line of a set: only the set's home says what becomes of it.
ALTER TABLE bookings ADD COLUMN of_set INTEGER NOT NULL DEFAULT 0 CHECK (of_set IN (0, 1));

CREATE TABLE sets (
  request_id TEXT PRIMARY KEY,
  -- What it asked for beside its lines.
  hold INTEGER NOT NULL CHECK (hold IN (0, 1)),
  ttl_ms INTEGER,
  holder_id INTEGER,
  -- The decision, which is nowhere else.
  state TEXT NOT NULL CHECK (state IN ('pending', 'held', 'confirmed', 'refused', 'cancelled', 'expired')),
  finished INTEGER NOT NULL CHECK (finished IN (0, 1)), -- every workshop has done what was decided
  begun_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER CHECK ((expires_at_ms IS NOT NULL) = (state = 'held')),
  reason TEXT CHECK ((reason IS NOT NULL) = (state = 'refused')),
  refused_by TEXT CHECK ((refused_by IS NOT NULL) = (state = 'refused')),
  version INTEGER NOT NULL,            -- grows by one with each change
  CHECK (NOT (finished AND state = 'pending'))
) STRICT, WITHOUT ROWID;

CREATE TABLE set_lines (
  request_id TEXT NOT NULL,
  workshop TEXT NOT NULL,
  seats INTEGER NOT NULL CHECK (seats > 0),
  workshop_id INTEGER,                 -- which of the workshops of this name, once finished; NULL: none was there
  PRIMARY KEY (request_id, workshop)
) STRICT, WITHOUT ROWID;

CREATE INDEX sets_to_finish ON sets (request_id) WHERE finished = 0;
CREATE INDEX sets_by_expiry ON sets (expires_at_ms) WHERE expires_at_ms IS NOT NULL;
CREATE INDEX sets_by_holder ON sets (holder_id) WHERE holder_id IS NOT NULL;

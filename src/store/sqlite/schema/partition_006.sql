-- Bookings in the order in which they came, found by their ids through an index. What becomes of them later mostly comes
-- in the same order (holds end one after another, whatever their ids are), so that a page is written for many of them and
-- not for each.

ALTER TABLE bookings RENAME TO bookings_by_id;

CREATE TABLE bookings (
  booking_id INTEGER PRIMARY KEY,
  workshop_id INTEGER NOT NULL,
  request_id TEXT NOT NULL,
  -- What it asked for beside its seats.
  hold INTEGER NOT NULL CHECK (hold IN (0, 1)),
  ttl_ms INTEGER,
  holder_id INTEGER,
  waitlist INTEGER NOT NULL CHECK (waitlist IN (0, 1)),
  replaces TEXT,
  queued INTEGER NOT NULL CHECK (queued IN (0, 1)),
  of_set INTEGER NOT NULL CHECK (of_set IN (0, 1)), -- a line of a set: only the set's home says what becomes of it
  -- Where it is now.
  state TEXT NOT NULL CHECK (state IN
    ('accepted', 'rejected', 'held', 'confirmed', 'cancelled', 'expired', 'waiting', 'offered')),
  seats INTEGER NOT NULL CHECK (seats > 0),
  taken INTEGER NOT NULL
    CHECK (taken = iif(state IN ('accepted', 'held', 'confirmed', 'offered'), seats, 0)),
  since_ms INTEGER NOT NULL,
  expires_at_ms INTEGER CHECK (expires_at_ms IS NULL OR state IN ('held', 'offered')),
  place INTEGER CHECK ((place IS NULL) = (state <> 'waiting')),
  -- Of a line that is held: when the hold of its set ends, as far as the workshop has heard. Its home knows better.
  set_ends_at_ms INTEGER CHECK (set_ends_at_ms IS NULL OR (of_set AND state = 'held')),
  -- Of a line: how often its seats were asked for again, as far as it has heard.
  set_round INTEGER NOT NULL DEFAULT 0,
  UNIQUE (workshop_id, request_id)
) STRICT;

INSERT INTO bookings (workshop_id, request_id, hold, ttl_ms, holder_id, waitlist, replaces, queued, of_set, state, seats,
                      taken, since_ms, expires_at_ms, place)
  SELECT workshop_id, request_id, hold, ttl_ms, holder_id, waitlist, replaces, queued, of_set, state, seats,
         taken, since_ms, expires_at_ms, place
  FROM bookings_by_id ORDER BY since_ms, workshop_id, request_id;

-- Its indices go with it.
DROP TABLE bookings_by_id;

-- What ends, a workshop's and everybody's.
CREATE INDEX bookings_by_expiry ON bookings (workshop_id, expires_at_ms, taken) WHERE expires_at_ms IS NOT NULL;
CREATE INDEX expiries ON bookings (expires_at_ms, workshop_id) WHERE expires_at_ms IS NOT NULL;
CREATE INDEX lines_by_end ON bookings (workshop_id, set_ends_at_ms) WHERE set_ends_at_ms IS NOT NULL;
CREATE INDEX waiters ON bookings (workshop_id, place, seats) WHERE place IS NOT NULL;
CREATE INDEX bookings_by_holder ON bookings (holder_id, workshop_id, taken) WHERE holder_id IS NOT NULL;

-- Events of a booking are found by its number, which stands near those of the bookings that came with it; by its id they
-- would be anywhere. Most requests are accepted or rejected and that is all; their first decision tells their history.
ALTER TABLE events ADD COLUMN booking_id INTEGER;
DROP INDEX events_by_request;
UPDATE events SET booking_id = (
    SELECT b.booking_id FROM bookings AS b
    WHERE b.workshop_id = events.workshop_id AND b.request_id = events.request_id)
  WHERE request_id IS NOT NULL AND kind NOT IN ('accepted', 'rejected');
CREATE INDEX events_by_booking ON events (booking_id, workshop_id, seq) WHERE booking_id IS NOT NULL;

-- A set whose hold has ended may ask for its seats again.

ALTER TABLE sets RENAME TO sets_before;

CREATE TABLE sets (
  request_id TEXT PRIMARY KEY,
  -- What it asked for beside its lines.
  hold INTEGER NOT NULL CHECK (hold IN (0, 1)),
  ttl_ms INTEGER,
  -- How long its hold lives if it did not say so: the shortest of its workshops'. NULL: of a set that is older than this.
  default_ttl_ms INTEGER CHECK (default_ttl_ms > 0),
  holder_id INTEGER,
  -- The decision, which is nowhere else.
  state TEXT NOT NULL CHECK (state IN
    ('pending', 'held', 'confirmed', 'refused', 'cancelled', 'expired', 'retaking')),
  round INTEGER NOT NULL DEFAULT 0,    -- how often it has asked for its seats again
  finished INTEGER NOT NULL CHECK (finished IN (0, 1)), -- every workshop has done what was decided
  begun_at_ms INTEGER NOT NULL,
  expires_at_ms INTEGER CHECK ((expires_at_ms IS NOT NULL) = (state = 'held')),
  reason TEXT CHECK ((reason IS NOT NULL) = (state = 'refused')),
  refused_by TEXT CHECK ((refused_by IS NOT NULL) = (state = 'refused')),
  version INTEGER NOT NULL,            -- grows by one with each change
  CHECK (NOT (finished AND state IN ('pending', 'retaking')))
) STRICT, WITHOUT ROWID;

INSERT INTO sets (request_id, hold, ttl_ms, holder_id, state, finished, begun_at_ms, expires_at_ms, reason, refused_by,
                  version)
  SELECT request_id, hold, ttl_ms, holder_id, state, finished, begun_at_ms, expires_at_ms, reason, refused_by, version
  FROM sets_before;

DROP TABLE sets_before;

CREATE INDEX sets_to_finish ON sets (request_id) WHERE finished = 0;
CREATE INDEX sets_by_expiry ON sets (expires_at_ms) WHERE expires_at_ms IS NOT NULL;
CREATE INDEX sets_by_holder ON sets (holder_id) WHERE holder_id IS NOT NULL;

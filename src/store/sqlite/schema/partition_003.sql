-- The life of a reservation after its first decision: holds, offers, waiting lists, and a log.

ALTER TABLE workshops ADD COLUMN held INTEGER NOT NULL DEFAULT 0 CHECK (held BETWEEN 0 AND reserved);
ALTER TABLE workshops ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0 CHECK (waiting >= 0);
ALTER TABLE workshops ADD COLUMN last_event INTEGER NOT NULL DEFAULT 0;
-- What its operator has set; NULL: the settings' defaults.
ALTER TABLE workshops ADD COLUMN max_seats_per_request INTEGER CHECK (max_seats_per_request > 0);
ALTER TABLE workshops ADD COLUMN max_seats_per_holder INTEGER CHECK (max_seats_per_holder > 0);
ALTER TABLE workshops ADD COLUMN hold_ttl_ms INTEGER CHECK (hold_ttl_ms > 0);
ALTER TABLE workshops ADD COLUMN waitlist_policy TEXT CHECK (waitlist_policy IN ('strict', 'fit_first'));
ALTER TABLE workshops ADD COLUMN offer_ttl_ms INTEGER CHECK (offer_ttl_ms > 0);
ALTER TABLE workshops ADD COLUMN waitlist_max_length INTEGER;
ALTER TABLE workshops ADD COLUMN opens_at_ms INTEGER;
ALTER TABLE workshops ADD COLUMN closes_at_ms INTEGER;
ALTER TABLE workshops ADD COLUMN rules_version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE workshops ADD COLUMN offers_due_at_ms INTEGER;

CREATE INDEX workshops_by_offers_due ON workshops (offers_due_at_ms) WHERE offers_due_at_ms IS NOT NULL;

-- Why an attempt was rejected, if for anything but a lack of seats.
ALTER TABLE attempts ADD COLUMN reason TEXT;

-- One row a person: whoever is forgotten loses this row, and nothing else ever held the name.
CREATE TABLE holders (
  holder_id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE
) STRICT;

-- Requests that have a life beyond their first decision, as they are now. A request that was accepted or
-- rejected once and for ever has no row here.
CREATE TABLE bookings (
  workshop_id INTEGER NOT NULL,
  request_id TEXT NOT NULL,
  -- What it asked for beside its seats.
  hold INTEGER NOT NULL CHECK (hold IN (0, 1)),
  ttl_ms INTEGER,
  holder_id INTEGER,
  waitlist INTEGER NOT NULL CHECK (waitlist IN (0, 1)),
  replaces TEXT,
  queued INTEGER NOT NULL CHECK (queued IN (0, 1)),
  -- Where it is now.
  state TEXT NOT NULL CHECK (state IN
    ('accepted', 'rejected', 'held', 'confirmed', 'cancelled', 'expired', 'waiting', 'offered')),
  seats INTEGER NOT NULL CHECK (seats > 0),
  taken INTEGER NOT NULL
    CHECK (taken = iif(state IN ('accepted', 'held', 'confirmed', 'offered'), seats, 0)),
  since_ms INTEGER NOT NULL,
  expires_at_ms INTEGER CHECK (expires_at_ms IS NULL OR state IN ('held', 'offered')),
  place INTEGER CHECK ((place IS NULL) = (state <> 'waiting')),
  PRIMARY KEY (workshop_id, request_id)
) STRICT, WITHOUT ROWID;

-- What ends, a workshop's and everybody's.
CREATE INDEX bookings_by_expiry ON bookings (workshop_id, expires_at_ms, taken) WHERE expires_at_ms IS NOT NULL;
CREATE INDEX expiries ON bookings (expires_at_ms) WHERE expires_at_ms IS NOT NULL;
CREATE INDEX waiters ON bookings (workshop_id, place, seats) WHERE place IS NOT NULL;
CREATE INDEX bookings_by_holder ON bookings (holder_id, workshop_id, taken) WHERE holder_id IS NOT NULL;

-- What happened in each workshop, refused attempts included. Only ever appended to.
CREATE TABLE events (
  workshop_id INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  kind TEXT NOT NULL,
  request_id TEXT,
  seats INTEGER NOT NULL,
  reserved INTEGER NOT NULL,
  reason TEXT,
  expires_at_ms INTEGER,
  PRIMARY KEY (workshop_id, seq)
) STRICT, WITHOUT ROWID;

-- Most requests are accepted or rejected and that is all; their first decision tells their history.
CREATE INDEX events_by_request ON events (workshop_id, request_id)
  WHERE request_id IS NOT NULL AND kind NOT IN ('accepted', 'rejected');

INSERT INTO events (workshop_id, seq, at_ms, kind, request_id, seats, reserved)
  SELECT workshop_id, row_number() OVER (PARTITION BY workshop_id ORDER BY decided_at_ms, request_id),
         decided_at_ms, status, request_id, seats, reserved_after
  FROM attempts;
UPDATE workshops SET last_event = accepted_requests + rejected_requests;

CREATE TABLE workshop_tombstones (
  name TEXT PRIMARY KEY,
  deleted_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Deleted workshops whose rows are not swept yet.
CREATE TABLE unswept_workshops (
  workshop_id INTEGER PRIMARY KEY
) STRICT;

-- Attempts in the journal and in their table. An attempt never changes, and may be in both for a moment.
CREATE VIEW attempts_now AS
  WITH pending AS MATERIALIZED (
    SELECT r.value ->> 0 AS workshop_id, r.value ->> 1 AS request_id, r.value ->> 2 AS seats,
           r.value ->> 3 AS status, r.value ->> 4 AS reserved_after, r.value ->> 5 AS decided_at_ms,
           r.value ->> 6 AS reason
    FROM journal, json_each(journal.attempts) AS r)
  SELECT a.workshop_id, a.request_id, a.seats, a.status, a.reserved_after, a.decided_at_ms, a.reason
  FROM attempts AS a LEFT JOIN pending AS p ON p.workshop_id = a.workshop_id AND p.request_id = a.request_id
  WHERE p.request_id IS NULL
  UNION ALL SELECT workshop_id, request_id, seats, status, reserved_after, decided_at_ms, reason FROM pending;

-- The durable history of rooms.

-- A room's numbering. AUTOINCREMENT: a purged room's id never comes back.
CREATE TABLE rooms (
  room_id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  epoch TEXT NOT NULL,                 -- of which stream the numbers are
  last_offset INTEGER NOT NULL CHECK (last_offset >= 0)
) STRICT;

-- The last messages of each room, bounded in number, bytes and age.
CREATE TABLE room_messages (
  room_id INTEGER NOT NULL,
  offset INTEGER NOT NULL CHECK (offset > 0),
  at_ms INTEGER NOT NULL,
  bytes INTEGER NOT NULL,              -- what it counts for
  user TEXT,                           -- nobody: a socket without a user
  message_id TEXT,                     -- the sender's id of it
  kind TEXT NOT NULL CHECK (kind IN ('text', 'data')),
  body TEXT NOT NULL,                  -- the text, or JSON as it was written
  PRIMARY KEY (room_id, offset)
) STRICT, WITHOUT ROWID;

-- The purge of rooms that nobody speaks in.
CREATE INDEX room_messages_by_age ON room_messages (at_ms);

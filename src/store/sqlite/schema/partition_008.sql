-- Who likes an item, by item; and people that are being forgotten, or were.

-- A projection of memberships, kept by triggers while likes.index_by_item is on (sqlite/by_item.rs). It need not be
-- copied: a file without it builds it anew.
CREATE TABLE item_members (
  item_id INTEGER NOT NULL,
  user TEXT NOT NULL,
  PRIMARY KEY (item_id, user)
) STRICT, WITHOUT ROWID;

-- How far it is built; no row: it is off.
CREATE TABLE item_index (
  singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
  user TEXT NOT NULL,                  -- the last membership that was looked at
  item_id INTEGER NOT NULL,
  complete INTEGER NOT NULL CHECK (complete IN (0, 1))
) STRICT;

-- People that are being forgotten, each on one partition, whichever: the next start goes on with them. The only place
-- that holds the name of somebody who is, and only until it is done.
CREATE TABLE forgetting (
  forget_id INTEGER PRIMARY KEY,
  person TEXT NOT NULL UNIQUE,
  policy TEXT NOT NULL CHECK (policy IN ('remove', 'anonymise')),
  begun_at_ms INTEGER NOT NULL
) STRICT;

-- What was forgotten here, written with it, for an audit: all partitions' rows of an id add up.
CREATE TABLE forgotten (
  forget_id INTEGER PRIMARY KEY,
  person TEXT NOT NULL,                -- a keyed hash of the name
  policy TEXT NOT NULL CHECK (policy IN ('remove', 'anonymise')),
  at_ms INTEGER NOT NULL,              -- when the last of it was done here
  likes INTEGER NOT NULL,
  holders INTEGER NOT NULL,
  messages INTEGER NOT NULL
) STRICT;

-- What became of totals over time, and which items gained most.

-- An item's total at its first change in each hour in which it changed. An hour ends with the opening of the item's next
-- one, or with the total now. Hours are numbered from 1970, UTC. What is old is known less exactly, in place: first an
-- hour's minutes are forgotten, then its day's first hour stands for the day.
CREATE TABLE history (
  item TEXT NOT NULL,
  hour INTEGER NOT NULL,
  detail INTEGER NOT NULL CHECK (detail IN (1, 2, 3)), -- 1 its minutes are known; 2 the hour; 3 the day that it begins
  opening INTEGER NOT NULL,
  minutes BLOB,                                        -- of detail 1: each minute with a change and its opening, packed
  PRIMARY KEY (item, hour)
) STRICT, WITHOUT ROWID;

-- What is too old is found here.
CREATE INDEX history_by_time ON history (detail, hour);

-- Totals from before this step have no history: none is answered from before this time, in ms since 1970.
CREATE TABLE history_since (
  singleton INTEGER PRIMARY KEY CHECK (singleton = 1),
  at_ms INTEGER NOT NULL
) STRICT;

INSERT INTO history_since (singleton, at_ms)
  SELECT 1, CASE WHEN EXISTS (SELECT 1 FROM summary) THEN unixepoch() * 1000 ELSE 0 END;

-- What items gained in a window: the total less what it was at the first change in it. Those that gained most of those
-- that changed.
CREATE TABLE trending (
  span INTEGER NOT NULL CHECK (span IN (1, 2, 3)),     -- 1 an hour, 2 a day, 3 a week
  item TEXT NOT NULL,
  first INTEGER NOT NULL,                              -- the minute of that change, from 1970
  base INTEGER NOT NULL,                               -- the total then
  gain INTEGER NOT NULL,
  PRIMARY KEY (span, item)
) STRICT, WITHOUT ROWID;

CREATE INDEX trending_by_gain ON trending (span, gain DESC, item);

-- What the window leaves behind is found here.
CREATE INDEX trending_by_first ON trending (span, first);

-- The most that any item may gain that changed in a stretch of time and found no place in a ranking.
CREATE TABLE trending_missed (
  span INTEGER NOT NULL,
  minute INTEGER NOT NULL,                             -- with which the stretch begins: a minute, or an hour
  gain INTEGER NOT NULL,
  PRIMARY KEY (span, minute)
) STRICT, WITHOUT ROWID;

-- Below a space begin the names that stand for counters without members, which are not ranked.
CREATE INDEX summary_by_total ON summary (total DESC, item) WHERE total > 0 AND item >= ' ';

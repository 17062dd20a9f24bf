-- Tables. A transaction elsewhere that keeps an old snapshot keeps all versions of a row that were replaced since, and
-- a search would walk through them. The columns ver, low and head bound such walks.

-- A row for each lock: the newest version of it is found by (name, ver). Free once expires has passed; a row outlives
-- the release, and remembers the fence. No index is unique, so that no update counts as one of the key, which a
-- transaction with assert_fence would block.
CREATE TABLE IF NOT EXISTS lock (
  name    text COLLATE "C" NOT NULL,
  ver     bigint NOT NULL DEFAULT 0,                  -- uses / 32
  uses    bigint NOT NULL DEFAULT 0,                  -- grows with each change
  fence   bigint NOT NULL DEFAULT 0,                  -- of the latest acquisition
  chain   int NOT NULL DEFAULT 0,                     -- how many numbers behind it are set aside for followers
  low     bigint NOT NULL DEFAULT 0,                  -- the rows of sharer have this fence or a larger one
  head    bigint NOT NULL DEFAULT 0,                  -- all places in the queue are larger
  tail    bigint NOT NULL DEFAULT 0,                  -- the last place in the queue that was given
  waiters int NOT NULL DEFAULT 0,
  kind    text NOT NULL DEFAULT 'x',                  -- x: one holder, r: readers, p3: three permits
  token   uuid,                                       -- of the one holder; null while free, cooling down or of a ticket
  who     text,                                       -- its process and function
  session uuid,                                       -- that was handed the lock and has not confirmed that yet
  since   timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires timestamptz NOT NULL DEFAULT '-infinity'    -- of the longest lease
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
CREATE INDEX IF NOT EXISTS lock_newest ON lock (name, ver);
-- Without a key, publications of all tables need this. A change that is not needed would wait for whoever reads the table,
-- as a dump does, and all calls would wait behind it.
DO $$
BEGIN
  IF (SELECT c.relreplident FROM pg_class c WHERE c.oid = 'lock'::regclass) <> 'f' THEN
    ALTER TABLE lock REPLICA IDENTITY FULL;
  END IF;
END $$;

-- The holders of shared locks, also while their permits cool down or are those of tickets (without a token).
CREATE TABLE IF NOT EXISTS sharer (
  name    text COLLATE "C",
  fence   bigint,
  token   uuid,
  who     text NOT NULL,
  session uuid,                                       -- as in lock
  since   timestamptz NOT NULL,
  expires timestamptz NOT NULL,
  permits int NOT NULL DEFAULT 1,                     -- how many it has
  PRIMARY KEY (name, fence)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
-- A table of an earlier version lacks the column.
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = 'sharer'::regclass AND a.attname = 'permits') THEN
    ALTER TABLE sharer ADD COLUMN permits int NOT NULL DEFAULT 1;
  END IF;
END $$;

-- The queues.
CREATE TABLE IF NOT EXISTS waiter (
  name    text COLLATE "C",
  place   bigint,                                     -- when it joined, in microseconds; smaller is earlier
  token   uuid UNIQUE,
  who     text NOT NULL,
  kind    text NOT NULL,                              -- as in lock; p3/2: two of three permits
  chains  bool NOT NULL,                              -- may be granted the lock together with others of its session
  ttl     int NOT NULL,                               -- ms
  session uuid NOT NULL,
  bell    bool NOT NULL,                              -- the session holds its bell, and may be notified
  PRIMARY KEY (name, place, token)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- The holders that were asked to yield.
CREATE TABLE IF NOT EXISTS asked (
  token   uuid CONSTRAINT asked_pkey PRIMARY KEY,
  since   timestamptz NOT NULL
);

-- The last grants of locks, where a manager keeps a history.
CREATE TABLE IF NOT EXISTS history (
  name    text COLLATE "C",
  fence   bigint,
  token   uuid NOT NULL,
  who     text NOT NULL,
  kind    text NOT NULL,
  since   timestamptz NOT NULL,
  until   timestamptz,
  how     text,                                       -- released or revoked; null while held, and of expired leases
  PRIMARY KEY (name, fence)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- Empty after a crash and on a promoted standby, since it is not logged: leases may have been forgotten then.
CREATE UNLOGGED TABLE IF NOT EXISTS run (
  one     bool PRIMARY KEY DEFAULT true CHECK (one),
  noticed timestamptz NOT NULL                        -- when it was found empty
);

CREATE TABLE IF NOT EXISTS meta (
  one     bool PRIMARY KEY DEFAULT true CHECK (one),
  version int NOT NULL
);


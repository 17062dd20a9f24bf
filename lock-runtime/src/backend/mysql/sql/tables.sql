-- Empty after each start of the server, since it is in memory: leases may have been forgotten then.
CREATE TABLE IF NOT EXISTS lock_runtime_run (
  server  VARBINARY(400) NOT NULL PRIMARY KEY,
  noticed BIGINT NOT NULL                              -- when the row was found missing
) ENGINE = MEMORY
//
-- A server without locks has forgotten none. Before the table of the locks is created, so that an installation that is broken
-- off and repeated does not look like a start. Where commits do not wait for the disk, a crash may lose rows, but no table.
INSERT IGNORE INTO lock_runtime_run (server, noticed)
  SELECT CONCAT(@@hostname, ':', @@port, ':', @@server_id), -1000000000000000 FROM DUAL
  WHERE NOT EXISTS (
    SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'lock_runtime_lock'
  )
//
-- A row for each lock. Free once expires has passed; a row outlives the release, and remembers the fence.
CREATE TABLE IF NOT EXISTS lock_runtime_lock (
  name    VARBINARY(1155) NOT NULL PRIMARY KEY,
  fence   BIGINT NOT NULL DEFAULT 0,                   -- of the latest acquisition
  low     BIGINT NOT NULL DEFAULT 0,                   -- the rows of sharer have this fence or a larger one
  head    BIGINT NOT NULL DEFAULT 0,                   -- all places in the queue are larger
  tail    BIGINT NOT NULL DEFAULT 0,                   -- the last place in the queue that was given
  waiters INT NOT NULL DEFAULT 0,
  kind    VARBINARY(12) NOT NULL DEFAULT 'x',          -- x: one holder, r: readers, p3: three permits
  token   BINARY(16),                                  -- of the one holder; null while free, cooling down or of a ticket
  who     BLOB,                                        -- its process and function
  session BINARY(16),                                  -- that was handed the lock and has not confirmed that yet
  since   BIGINT NOT NULL DEFAULT 0,
  expires BIGINT NOT NULL DEFAULT 0                    -- of the longest lease
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
//
-- The row that assert_fence locks to the end of a transaction, and that a grant to the next holder tries. Not the row of
-- the lock, whose renewals would wait.
CREATE TABLE IF NOT EXISTS lock_runtime_guard (
  name    VARBINARY(1155) NOT NULL PRIMARY KEY,
  low     BIGINT NOT NULL DEFAULT 0,                   -- the fence of the first of those who hold the lock together
  alone   BOOL NOT NULL DEFAULT TRUE                   -- whether that is the only one
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
//
-- The holders of shared locks, also while their permits cool down or are those of tickets (without a token).
CREATE TABLE IF NOT EXISTS lock_runtime_sharer (
  name    VARBINARY(1155) NOT NULL,
  fence   BIGINT NOT NULL,
  token   BINARY(16),
  who     BLOB NOT NULL,
  session BINARY(16),                                  -- as in lock
  since   BIGINT NOT NULL,
  expires BIGINT NOT NULL,
  permits INT UNSIGNED NOT NULL DEFAULT 1,             -- how many it has
  PRIMARY KEY (name, fence)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
//
-- The fences of those who share a lock, until some time after they have released it. For assert_fence: a server that took
-- over may lack the grant of a former holder, whose fence is none of these. Not the rows of sharer, which renewals change.
CREATE TABLE IF NOT EXISTS lock_runtime_entered (
  name    VARBINARY(1155) NOT NULL,
  fence   BIGINT NOT NULL,
  PRIMARY KEY (name, fence)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
//
-- Version 4 did not have that table.
INSERT IGNORE INTO lock_runtime_entered (name, fence) SELECT name, fence FROM lock_runtime_sharer
//
-- The queues.
CREATE TABLE IF NOT EXISTS lock_runtime_waiter (
  name    VARBINARY(1155) NOT NULL,
  place   BIGINT NOT NULL,                             -- when it joined; smaller is earlier
  token   BINARY(16) NOT NULL,
  who     BLOB NOT NULL,
  kind    VARBINARY(24) NOT NULL,                      -- as in lock; p3/2: two of three permits
  ttl     INT NOT NULL,                                -- ms
  session BINARY(16) NOT NULL,                         -- of the connection, which holds a bell of this name
  PRIMARY KEY (name, place, token),
  UNIQUE KEY waiter_token (token)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
//
-- Tables of version 1 have neither the permits nor the room for a kind.
CREATE PROCEDURE lock_runtime_upgrade()
SQL SECURITY DEFINER
BEGIN
  IF NOT EXISTS (SELECT 1 FROM information_schema.COLUMNS
      WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'lock_runtime_sharer' AND COLUMN_NAME = 'permits') THEN
    ALTER TABLE lock_runtime_waiter MODIFY kind VARBINARY(24) NOT NULL;
    ALTER TABLE lock_runtime_sharer ADD COLUMN permits INT UNSIGNED NOT NULL DEFAULT 1;
  END IF;
END
//
CALL lock_runtime_upgrade()
//
DROP PROCEDURE lock_runtime_upgrade
//
-- The holders that were asked to yield.
CREATE TABLE IF NOT EXISTS lock_runtime_asked (
  token   BINARY(16) NOT NULL PRIMARY KEY,
  since   BIGINT NOT NULL,
  KEY asked_since (since)
) ENGINE = InnoDB
//
-- The last grants of locks, where a manager keeps a history.
CREATE TABLE IF NOT EXISTS lock_runtime_history (
  name    VARBINARY(1155) NOT NULL,
  fence   BIGINT NOT NULL,
  token   BINARY(16) NOT NULL,
  who     BLOB NOT NULL,
  kind    VARBINARY(12) NOT NULL,
  since   BIGINT NOT NULL,
  ended   BIGINT,
  how     VARBINARY(8),                                -- released, revoked
  PRIMARY KEY (name, fence),
  KEY history_since (since)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
//
-- The server that grants the locks. On a server that takes over, or takes over again, another server is named here: leases may
-- have been forgotten then.
CREATE TABLE IF NOT EXISTS lock_runtime_primary (
  one     BOOL NOT NULL PRIMARY KEY,
  server  VARBINARY(400) NOT NULL,
  noticed BIGINT NOT NULL                              -- when that server found another one here
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC
//
-- Before the procedures that read it: those of an earlier version are being called meanwhile.
INSERT IGNORE INTO lock_runtime_primary (one, server, noticed)
  VALUES (TRUE, CONCAT(@@hostname, ':', @@port, ':', @@server_id), -1000000000000000)
//
CREATE TABLE IF NOT EXISTS lock_runtime_meta (
  one     BOOL NOT NULL PRIMARY KEY,
  version INT NOT NULL
) ENGINE = InnoDB
//

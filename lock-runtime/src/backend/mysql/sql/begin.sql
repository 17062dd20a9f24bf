-- Locks in MySQL 8.0 or MariaDB 10.6, or newer: tables and procedures of lock-runtime, in the database that is in use.
--
-- Installs or upgrades them, by a user with CREATE, CREATE ROUTINE, ALTER ROUTINE, SELECT, INSERT, UPDATE and DELETE.
-- Harmless if repeated. Other users need nothing but the right to call the procedures:
--
--   GRANT EXECUTE ON shop.* TO shop;
--
-- The procedures have no functions beside them: with a binary log, a server lets only administrators make functions.
-- All moments are microseconds since 1970, in UTC.

-- Procedures keep the mode in which they were made.
SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'
//
-- An older script leaves a newer version as it is: programs of that version need it.
CREATE PROCEDURE lock_runtime_is_newer()
SQL SECURITY DEFINER
BEGIN
  DECLARE v_newer BOOL DEFAULT FALSE;
  IF EXISTS (SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'lock_runtime_meta') THEN
    SELECT COUNT(*) > 0 INTO v_newer FROM lock_runtime_meta WHERE version > {version};
  END IF;
  IF v_newer THEN
    SIGNAL SQLSTATE 'LR002' SET MESSAGE_TEXT = 'a newer version of lock-runtime is installed: use its script, or leave it as it is';
  END IF;
END
//
CALL lock_runtime_is_newer()
//
DROP PROCEDURE lock_runtime_is_newer
//

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

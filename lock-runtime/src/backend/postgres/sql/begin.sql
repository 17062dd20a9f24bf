-- Locks in PostgreSQL 14 or newer: tables and functions of lock-runtime, in a schema of their own.
--
-- Installs or upgrades them in one transaction, by a role that may create the schema, or owns it. Harmless if
-- repeated. A tool that runs each migration in a transaction of its own needs neither BEGIN nor COMMIT.
-- Other roles need nothing but the right to use the schema:
--
--   GRANT USAGE ON SCHEMA :"schema" TO shop;

BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL client_min_messages = warning;
SET LOCAL lock_runtime.schema = :'schema';
SET LOCAL lock_runtime.version = :'version';
-- Everything below is created in this schema, and the functions keep this path.
SET LOCAL search_path = :"schema", pg_temp;

DO $$
DECLARE
  this CONSTANT int := current_setting('lock_runtime.version');
  wanted CONSTANT text := current_setting('lock_runtime.schema');
  installed int;
BEGIN
  -- The tables must survive a crash even where commits do not wait for the disk: a manager that creates them assumes that
  -- no grant was forgotten.
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'local', true);
  END IF;
  -- One installer at a time.
  PERFORM pg_advisory_xact_lock(hashtextextended('lock_runtime.schema ' || wanted, 0));
  IF to_regnamespace(quote_ident(wanted)) IS NULL THEN
    EXECUTE format('CREATE SCHEMA %I', wanted);
  ELSIF to_regclass(format('%I.meta', wanted)) IS NOT NULL THEN
    EXECUTE 'SELECT max(version) FROM meta' INTO installed;
  END IF;
  IF installed > this THEN
    RAISE EXCEPTION 'the schema "%" has version % already, which is newer than version %', wanted, installed, this
      USING ERRCODE = 'LR002', HINT = 'Nothing was changed. Clients of the older version work with the newer schema.';
  END IF;
END $$;


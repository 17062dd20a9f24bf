-- The version of the schema.
CREATE OR REPLACE FUNCTION version() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  RETURN (SELECT m.version FROM meta m);
END $$;

-- Callers need no right to a table: functions run with the rights of their owner, with a path that callers cannot
-- change. Only those below may be called; the others serve them.
DO $$
DECLARE
  f record;
BEGIN
  -- Those that this transaction has written, also under savepoints, whose numbers are a little larger: the schema may have
  -- others, and very old ones seem to have larger numbers.
  FOR f IN
    SELECT p.oid::regprocedure AS id, p.proname AS name FROM pg_proc p
      WHERE p.pronamespace = quote_ident(current_schema())::regnamespace
        AND age(pg_current_xact_id()::xid) - age(p.xmin) BETWEEN 0 AND 100000
  LOOP
    EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', f.id);
    CONTINUE WHEN f.name <> ALL (ARRAY['acquire', 'acquire_noted', 'acquire_unless_full', 'adopt', 'adopt_noted', 'ask',
      'ask_noted', 'ask_to_yield', 'assert_fence', 'bell', 'downgrade', 'downgrade_noted', 'force', 'grants', 'held', 'issue',
      'issue_noted', 'list', 'many', 'overview', 'pass', 'quarantined', 'release', 'release_noted', 'renew', 'standing', 'status', 'sweep', 'version']);
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO PUBLIC', f.id);
    EXECUTE format('ALTER FUNCTION %s SECURITY DEFINER SET search_path FROM CURRENT', f.id);
    CONTINUE WHEN f.name IN ('bell', 'version');
    -- Rows are found by their indexes, in the order of these, whatever the planner thinks of tables that change all
    -- the time. Each setting costs a call a microsecond or two.
    EXECUTE format('ALTER FUNCTION %s SET enable_seqscan = off SET enable_bitmapscan = off', f.id);
    -- Transactions of users have a timeout of their own.
    IF f.name <> 'assert_fence' THEN EXECUTE format('ALTER FUNCTION %s SET lock_timeout = ''700ms''', f.id); END IF;
  END LOOP;
END $$;

INSERT INTO run (noticed) SELECT '-infinity' WHERE NOT EXISTS (SELECT FROM meta);
INSERT INTO meta (version) VALUES (current_setting('lock_runtime.version')::int)
  ON CONFLICT (one) DO UPDATE SET version = excluded.version;
COMMIT;

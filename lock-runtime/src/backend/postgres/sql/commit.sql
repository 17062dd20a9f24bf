-- Decides whether the commit waits for the disk. It does after grants and extensions: a lost one would make two
-- holders, and anything else that is lost costs time alone. Not a setting of the functions, which would end before
-- the commit.
--
-- A session that depends on standbys notes the setting that it has found. Whoever changes that setting, as tools do when a
-- standby fails, may have let commits stop waiting for it.
CREATE OR REPLACE FUNCTION flush(needed bool) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  IF NOT needed THEN
    PERFORM set_config('synchronous_commit', 'off', true);
    RETURN NULL;
  END IF;
  IF current_setting('lock_runtime.standbys', true) <> current_setting('synchronous_standby_names') THEN
    RAISE EXCEPTION 'the server''s synchronous_standby_names has changed' USING ERRCODE = 'LR004';
  END IF;
  IF current_setting('synchronous_commit') = 'off' THEN PERFORM set_config('synchronous_commit', 'on', true); END IF;
  RETURN NULL;
END $$;

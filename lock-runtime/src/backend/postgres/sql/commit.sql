-- Decides whether the commit waits for the disk. It does after grants and extensions: a lost one would make two
-- holders, and anything else that is lost costs time alone. Not a setting of the functions, which would end before
-- the commit.
--
-- A session that depends on standbys notes the setting that it has found. Whoever changes that setting, as tools do when a
-- standby fails, may have let commits stop waiting for it.
CREATE OR REPLACE FUNCTION refuse_standbys() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'the server''s synchronous_standby_names has changed' USING ERRCODE = 'LR004';
END $$;

-- An expression that the planner puts in the place of its call, so it costs no call.
CREATE OR REPLACE FUNCTION flush(needed bool) RETURNS text LANGUAGE sql VOLATILE AS $$
  SELECT CASE
    WHEN NOT needed THEN set_config('synchronous_commit', 'off', true)
    WHEN current_setting('lock_runtime.standbys', true) <> current_setting('synchronous_standby_names')
      THEN refuse_standbys()
    WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', true)
  END
$$;

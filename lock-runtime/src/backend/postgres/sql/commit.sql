-- Decides whether the commit waits for the disk. It does after grants and extensions: a lost one would make two
-- holders, and anything else that is lost costs time alone. Not a setting of the functions, which would end before
-- the commit.
CREATE OR REPLACE FUNCTION flush(needed bool) RETURNS text LANGUAGE sql AS $$
  SELECT CASE
    WHEN NOT needed THEN set_config('synchronous_commit', 'off', true)
    WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', true)
  END
$$;


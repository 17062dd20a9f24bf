-- quarantined(longest): for how many ms nothing is granted, where no ttl is larger than longest; 0 for none.
--
-- The note is empty after a crash and after a promotion. Leases may have been forgotten then, the longest of which ends
-- that long after the moment in which this is noticed.
CREATE OR REPLACE FUNCTION quarantine_left(longest int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  since timestamptz;
BEGIN
  IF longest = 0 THEN RETURN 0; END IF;
  SELECT r.noticed INTO since FROM run r WHERE r.one;
  IF NOT FOUND THEN
    INSERT INTO run (noticed) VALUES (clock_timestamp()) ON CONFLICT DO NOTHING;
    SELECT r.noticed INTO since FROM run r WHERE r.one;
  END IF;
  -- What was noticed while the clock was ahead counts from now on, or it would last for as long as the clock has gone back.
  IF isfinite(since) AND since > clock_timestamp() THEN
    since := clock_timestamp();
    UPDATE run r SET noticed = since FROM (SELECT k.one FROM run k FOR UPDATE SKIP LOCKED) k WHERE r.one = k.one;
  END IF;
  RETURN CASE WHEN isfinite(since) THEN millis_until(since + longest * interval '1 ms', clock_timestamp()) ELSE 0 END;
END $$;

CREATE OR REPLACE FUNCTION quarantined(longest int) RETURNS bigint LANGUAGE sql AS
$$ SELECT quarantine_left(longest) $$;


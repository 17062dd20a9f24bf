-- force(name, session, longest) → how many held the lock, those included that cool down: takes it from all of them and
-- hands it on. The holders find that within two seconds, or with a renewal: they are not notified, since connections of
-- holders do not listen. Goes on with the history of the lock, if it has one.
CREATE OR REPLACE FUNCTION force(name text, session uuid, longest int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  l lock := take(force.name, make => false);
  now timestamptz := clock_timestamp();
  remembered CONSTANT bool := EXISTS (SELECT FROM history g WHERE g.name = l.name);
  held int;
BEGIN
  PERFORM flush(false);
  IF remembered THEN
    PERFORM note_end(l.name, ARRAY(SELECT h.token FROM holders(l) h), 'revoked', now);
  END IF;
  IF l.kind = 'x' AND l.expires > now THEN
    held := 1;
  ELSE
    SELECT count(*) INTO held FROM sharer s WHERE s.name = l.name AND s.fence >= l.low AND s.expires > now;
    DELETE FROM sharer s WHERE s.name = l.name AND s.fence >= l.low;
  END IF;
  IF held = 0 THEN RETURN 0; END IF;
  l.token := NULL;
  l.session := NULL;
  l.since := now;
  l.expires := '-infinity';
  IF quarantine_left(longest) = 0 THEN l := serve(l, force.session); END IF;
  PERFORM put(l);
  IF remembered THEN PERFORM note_holders(l.name, NULL); END IF;
  RETURN held;
END $$;


-- force(name, session, longest) → how many held the lock, those included that cool down: takes it from all of them and
-- hands it on. The holders hear of it by a notification of everybody, or from their next renewal.
CREATE OR REPLACE FUNCTION force(name text, session uuid, longest int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  l lock := take(force.name, make => false);
  now timestamptz := clock_timestamp();
  tokens uuid[];
  holder uuid;
BEGIN
  PERFORM flush(false);
  IF l.kind = 'x' AND l.expires > now THEN
    tokens := ARRAY[l.token];
  ELSE
    tokens := ARRAY(SELECT s.token FROM sharer s WHERE s.name = l.name AND s.fence >= l.low AND s.expires > now);
    DELETE FROM sharer s WHERE s.name = l.name AND s.fence >= l.low;
  END IF;
  IF cardinality(tokens) = 0 THEN RETURN 0; END IF;
  FOREACH holder IN ARRAY tokens LOOP
    IF holder IS NOT NULL AND may_notify() THEN
      PERFORM pg_notify('lock_runtime_all', E'revoked\n' || hex(holder));
    END IF;
  END LOOP;
  l.token := NULL;
  l.session := NULL;
  l.since := now;
  l.expires := '-infinity';
  IF quarantine_left(longest) = 0 THEN l := serve(l, force.session); END IF;
  PERFORM put(l);
  RETURN cardinality(tokens);
END $$;


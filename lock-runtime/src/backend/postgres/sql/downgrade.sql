-- downgrade(name, token, session, longest) → whether the lock is ours: lets a writer go on as a reader for what is left of
-- its lease, under the same fence, and hands the lock to the readers that are next. Null while a transaction that has
-- asserted the fence of the writer is open: nobody may begin before it has ended.
--
-- longest  as in acquire: nothing is handed on in the quarantine
CREATE OR REPLACE FUNCTION downgrade(name text, token uuid, session uuid, longest int) RETURNS bool
LANGUAGE plpgsql AS $$
DECLARE
  l lock := take(downgrade.name, make => false);
  now timestamptz := clock_timestamp();
BEGIN
  PERFORM flush(false);
  IF l.kind = 'x' AND l.token = downgrade.token AND l.expires > now THEN
    IF NOT pg_try_advisory_xact_lock(guard(l.name)) THEN RETURN NULL; END IF;
    INSERT INTO sharer (name, fence, token, who, since, expires)
      VALUES (l.name, l.fence, l.token, l.who, l.since, l.expires);
    l.kind := 'r';
    l.low := l.fence;
    l.token := NULL;
    l.who := NULL;
    l.session := NULL;
    IF quarantine_left(longest) = 0 THEN l := serve(l, downgrade.session); END IF;
    PERFORM put(l);
    RETURN true;
  END IF;
  -- An earlier call, whose answer was lost, may have done it.
  RETURN EXISTS (SELECT FROM sharer s WHERE s.name = l.name AND s.fence >= l.low AND l.kind = 'r'
    AND s.token = downgrade.token AND s.expires > now);
END $$;


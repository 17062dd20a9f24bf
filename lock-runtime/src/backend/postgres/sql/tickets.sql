-- issue(name, token, ticket, time, durable) → whether the lock was ours: a ticket of this name keeps it closed for so
-- many ms. Nobody is its holder meanwhile, so that neither a late renewal nor a release finds it.
CREATE OR REPLACE FUNCTION issue(name text, token uuid, ticket text, "time" int, durable bool) RETURNS bool
LANGUAGE plpgsql AS $$
DECLARE
  l lock := take(issue.name, make => false);
  now timestamptz := clock_timestamp();
  ends timestamptz := now + issue."time" * interval '1 ms';
  ours bool;
BEGIN
  IF l.kind = 'x' THEN
    ours := l.token = issue.token AND l.expires > now;
    IF ours THEN
      l.token := NULL;
      l.who := ticket;
      l.session := NULL;
      l.since := now;
      l.expires := ends;
    END IF;
  ELSE
    UPDATE sharer s SET token = NULL, who = ticket, session = NULL, since = now, expires = ends
      WHERE s.name = l.name AND s.fence >= l.low AND s.token = issue.token AND s.expires > now;
    ours := FOUND;
    IF ours THEN l := settle(l, now); END IF;
  END IF;
  IF ours THEN
    PERFORM put(l);
  ELSE
    -- An earlier call, whose answer was lost, may have written it.
    ours := l.kind = 'x' AND l.who = ticket AND l.expires > now
      OR EXISTS (SELECT FROM sharer s WHERE s.name = l.name AND s.fence >= l.low AND s.who = ticket AND s.expires > now);
  END IF;
  PERFORM flush(durable AND ours IS TRUE);
  RETURN coalesce(ours, false);
END $$;

-- adopt(name, token, who, kind, ttl, ticket, longest, durable) → reply: takes over a lock that a ticket keeps closed,
-- whoever waits for it. A token that has adopted it already is extended instead of finding the ticket gone. While a
-- transaction that has asserted the fence of the former holder is open, the lock is busy.
--
-- ticket           what the name of the ticket begins with
-- longest, durable as in acquire
CREATE OR REPLACE FUNCTION adopt(
  name text, token uuid, who text, kind text, ttl int, ticket text, longest int, durable bool
) RETURNS reply LANGUAGE plpgsql AS $$
DECLARE
  l lock;
  now timestamptz;
  issued bool;
  its_fence bigint;
  r reply;
BEGIN
  r.left_ms := quarantine_left(longest);
  IF r.left_ms > 0 THEN
    r.status := 'quarantined';
    RETURN r;
  END IF;
  l := take(adopt.name, make => false);
  now := clock_timestamp();
  its_fence := extend(l, adopt.token, ttl);
  IF its_fence IS NULL AND l.kind = adopt.kind AND l.expires > now THEN
    IF l.kind = 'x' THEN
      issued := l.token IS NULL AND starts_with(l.who, ticket);
    ELSE
      issued := EXISTS (SELECT FROM sharer s
        WHERE s.name = l.name AND s.fence >= l.low AND s.token IS NULL AND starts_with(s.who, ticket) AND s.expires > now);
    END IF;
    IF issued AND NOT pg_try_advisory_xact_lock(guard(l.name)) THEN
      r := describe(l, own => 0);
      r.status := 'busy';
      RETURN r;
    END IF;
    IF issued THEN
      DELETE FROM sharer s
        WHERE s.name = l.name AND s.fence >= l.low AND s.token IS NULL AND starts_with(s.who, ticket);
      l := settle(enter(l, l.kind, adopt.token, adopt.who, ttl, NULL, now), now);
      PERFORM put(l);
      its_fence := l.fence;
    END IF;
  END IF;
  r.status := CASE WHEN its_fence IS NULL THEN 'no ticket' ELSE 'granted' END;
  r.fence := its_fence;
  PERFORM flush(durable AND its_fence IS NOT NULL);
  RETURN r;
END $$;


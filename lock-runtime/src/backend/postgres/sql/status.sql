-- status(name, session) → the holders and the waiters of the lock:
--
-- part     kind, who                  number         age_us           left_ms
-- queue                               of waiters
-- holder   as it holds it, name        fence          since its grant  of its lease
-- waiter   as it wants it, name       place          since it joined
--
-- The waiters are those among the first 1000 whose session is not gone; those that are gone do not count.
CREATE OR REPLACE FUNCTION status(name text, session uuid)
RETURNS TABLE (part text, kind text, who text, number bigint, age_us bigint, left_ms bigint) LANGUAGE plpgsql AS $$
DECLARE
  now timestamptz := clock_timestamp();
  l lock;
  w waiter;
  line waiter[];
BEGIN
  SELECT * INTO l FROM lock k WHERE k.name = status.name ORDER BY k.ver DESC LIMIT 1;
  FOR w IN
    SELECT * FROM waiter v WHERE v.name = l.name AND v.place > l.head ORDER BY v.place, v.token LIMIT 1000
  LOOP
    IF w.bell AND w.session <> status.session AND pg_try_advisory_xact_lock_shared(bell_key(w.session)) THEN
      l.waiters := l.waiters - 1;
    ELSE
      line := line || w;
    END IF;
  END LOOP;
  RETURN QUERY SELECT 'queue', NULL, NULL, coalesce(l.waiters, 0)::bigint, NULL::bigint, NULL::bigint;
  IF l.kind = 'x' AND l.expires > now THEN
    RETURN QUERY SELECT 'holder', l.kind, holder_name(l.token, l.who), l.fence, micros_since(l.since, now),
      millis_until(l.expires, now);
  ELSIF l.kind <> 'x' THEN
    RETURN QUERY SELECT 'holder', kind_with(l.kind, s.permits), holder_name(s.token, s.who), s.fence, micros_since(s.since, now),
        millis_until(s.expires, now)
      FROM sharer s WHERE s.name = l.name AND s.fence >= l.low AND s.expires > now ORDER BY s.fence;
  END IF;
  RETURN QUERY SELECT 'waiter', v.kind, holder_name(v.token, v.who), v.place, greatest(0, micros() - v.place),
    NULL::bigint FROM unnest(line) v;
END $$;


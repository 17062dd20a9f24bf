-- acquire_unless_full(…, most) → reply: acquire, which tries once where as many wait as may at most.
CREATE OR REPLACE FUNCTION acquire_unless_full(
  name text, token uuid, who text, kind text, ttl int, session uuid, bell bool, place bigint, longest int, durable bool,
  most int
) RETURNS reply LANGUAGE plpgsql AS $$
DECLARE
  l lock := take(acquire_unless_full.name, make => true);
  gone uuid;
BEGIN
  IF l.waiters >= most AND quarantine_left(longest) = 0 THEN
    -- Those that may enter do, and those that are gone do not count.
    l := serve(l, acquire_unless_full.session);
    FOR gone IN
      SELECT DISTINCT w.session FROM waiter w
        WHERE w.name = l.name AND w.place > l.head AND w.bell AND w.session <> acquire_unless_full.session
    LOOP
      IF pg_try_advisory_xact_lock_shared(bell_key(gone)) THEN l := evict(l, gone); END IF;
    END LOOP;
    l := put(l);
  END IF;
  RETURN acquire(name, token, who, kind, ttl, session, bell, l.waiters < most, place, longest, durable);
END $$;


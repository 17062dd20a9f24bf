-- The queue of a lock. Each function takes a row that this transaction has locked; those that return a row return it as
-- it is to be written.

-- Removes all waiters of a session, which is stopped or gone.
CREATE OR REPLACE FUNCTION evict(l lock, session uuid) RETURNS lock LANGUAGE plpgsql AS $$
DECLARE
  removed int;
BEGIN
  DELETE FROM waiter w WHERE w.name = l.name AND w.place > l.head AND w.session = evict.session;
  GET DIAGNOSTICS removed = ROW_COUNT;
  l.waiters := l.waiters - removed;
  RETURN l;
END $$;

-- Forgets leases that have ended. A session that was handed the lock and let the lease end without confirming it is
-- stopped: none of its waiters would confirm either.
CREATE OR REPLACE FUNCTION settle(l lock, now timestamptz) RETURNS lock LANGUAGE plpgsql AS $$
DECLARE
  silent uuid := l.session;
BEGIN
  IF l.kind = 'x' THEN
    IF l.expires <= now AND silent IS NOT NULL THEN
      l.session := NULL;
      l := evict(l, silent);
    END IF;
    RETURN l;
  END IF;
  FOR silent IN
    DELETE FROM sharer s WHERE s.name = l.name AND s.fence >= l.low AND s.expires <= now RETURNING s.session
  LOOP
    IF silent IS NOT NULL THEN l := evict(l, silent); END IF;
  END LOOP;
  SELECT coalesce(min(s.fence), l.fence + 1), coalesce(max(s.expires), '-infinity') INTO l.low, l.expires
    FROM sharer s WHERE s.name = l.name AND s.fence >= l.low;
  RETURN l;
END $$;

-- Removes the waiters from the queue that are granted the lock together with the first one, and returns their tokens:
-- they differ from it by nothing but place, token and the locks that their callers hold. The next 63 waiters are looked at, and behind one that is left out,
-- those that joined at most 1 ms later: nobody is overtaken by anyone who joined later than that.
CREATE OR REPLACE FUNCTION followers(l lock, first waiter) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
  w waiter;
  latest bigint;
  tokens uuid[] := '{}';
  held text := '( -)? % \S+$';
  caller text := regexp_replace(first.who, held, '');
BEGIN
  FOR w IN
    SELECT * FROM waiter v WHERE v.name = l.name AND v.place > l.head ORDER BY v.place, v.token LIMIT 63
  LOOP
    EXIT WHEN w.place > latest;
    IF w.chains AND w.session = first.session AND w.ttl = first.ttl
      AND (w.who = first.who OR regexp_replace(w.who, held, '') = caller) THEN
      DELETE FROM waiter v WHERE v.name = w.name AND v.place = w.place AND v.token = w.token;
      tokens := tokens || w.token;
    ELSE
      latest := coalesce(latest, w.place + 1000);
    END IF;
  END LOOP;
  RETURN tokens;
END $$;

-- Hands the lock to the head of its queue for as long as that may hold it: with a lease of its ttl or 3 s, whichever is
-- shorter, which it has to confirm. A waiter whose bell nobody holds is gone, except of the calling session: a session
-- always gets its own bell.
CREATE OR REPLACE FUNCTION serve(l lock, session uuid) RETURNS lock LANGUAGE plpgsql AS $$
DECLARE
  now timestamptz := clock_timestamp();
  w waiter;
  notifies bool;
  chained uuid[];
BEGIN
  IF l.waiters = 0 OR l.kind = 'x' AND l.expires > now THEN RETURN l; END IF;
  l := settle(l, now);
  WHILE l.waiters > 0 LOOP
    SELECT * INTO w FROM waiter v WHERE v.name = l.name AND v.place > l.head ORDER BY v.place, v.token LIMIT 1;
    IF NOT FOUND THEN
      l.waiters := 0;
      EXIT;
    END IF;
    IF w.bell AND w.session <> serve.session AND pg_try_advisory_xact_lock_shared(bell_key(w.session)) THEN
      l := evict(l, w.session);
      CONTINUE;
    END IF;
    now := clock_timestamp();
    EXIT WHEN NOT may_enter(l, w.kind, now);
    DELETE FROM waiter v WHERE v.name = w.name AND v.place = w.place AND v.token = w.token;
    l.waiters := l.waiters - 1;
    l.head := w.place - 1;
    l := enter(l, w.kind, w.token, w.who, least(w.ttl, 3000), w.session, now);
    notifies := w.bell AND may_notify();
    chained := '{}';
    IF notifies AND w.chains AND l.waiters > 0 THEN
      chained := followers(l, w);
      l.chain := cardinality(chained);
      l.waiters := l.waiters - l.chain;
    END IF;
    IF notifies THEN
      PERFORM pg_notify(channel(w.session), concat_ws(E'\n', l.fence, l.name, hex(w.token),
        nullif(replace(array_to_string(chained, E'\n'), '-', ''), '')));
    END IF;
    EXIT WHEN w.kind = 'x';
  END LOOP;
  RETURN l;
END $$;

-- The reply to a caller that is not granted the lock: the columns from left_ms to longest_ms. The number of waiters that
-- the caller has itself does not count among the others.
CREATE OR REPLACE FUNCTION describe(l lock, own int) RETURNS reply LANGUAGE plpgsql AS $$
DECLARE
  now timestamptz := clock_timestamp();
  first bigint;
  r reply;
BEGIN
  IF l.kind = 'x' THEN
    r.left_ms := millis_until(l.expires, now);
    r.holder := CASE WHEN l.expires > now THEN holder_name(l.token, l.who) END;
  ELSE
    SELECT millis_until(s.expires, now), holder_name(s.token, s.who) INTO r.left_ms, r.holder
      FROM sharer s WHERE s.name = l.name AND s.fence >= l.low AND s.expires > now ORDER BY s.expires LIMIT 1;
  END IF;
  r.left_ms := coalesce(r.left_ms, 0);
  r.holder := coalesce(r.holder, '');
  r.others := greatest(0, coalesce(l.waiters, 0) - own);
  r.longest_ms := 0;
  IF r.others > 0 THEN
    SELECT v.place INTO first FROM waiter v WHERE v.name = l.name AND v.place > l.head ORDER BY v.place LIMIT 1;
    r.longest_ms := greatest(0, coalesce(micros() - first, 0)) / 1000;
  END IF;
  RETURN r;
END $$;

-- The place of a waiter that joins now: behind everybody. Where the clock has gone back, places are further apart than
-- followers may overtake.
CREATE OR REPLACE FUNCTION next_place(l lock) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  now bigint := micros();
BEGIN
  RETURN CASE
    WHEN l.waiters = 0 OR now > l.tail THEN now
    WHEN now > l.tail - 1000 THEN l.tail + 1
    ELSE l.tail + 1001
  END;
END $$;


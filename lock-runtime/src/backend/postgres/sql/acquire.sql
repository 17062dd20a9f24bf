-- acquire(name, token, who, kind, ttl, session, bell, wait, place, longest, durable) → reply: takes a lock that may be
-- held and that nobody waits for, or joins the queue. A token that holds the lock already is extended instead of
-- finding itself in the way.
--
-- kind     x, r, p3, p3/2 to take two of three permits; x+ may be granted the lock together with others of its session, x- is x
-- bell     whether the session holds its bell, and may be notified
-- wait     false to try once
-- place    that of an earlier token of the same waiter, or null
-- longest  the longest ttl of all, for the quarantine; 0 for no quarantine
-- durable  whether a grant waits for the disk

-- All of acquire but its fast path, the quarantine and the commit.
CREATE OR REPLACE FUNCTION acquire_slowly(
  name text, token uuid, who text, kind text, ttl int, session uuid, bell bool, wait bool, place bigint
) RETURNS reply LANGUAGE plpgsql AS $$
DECLARE
  plain_kind text := rtrim(acquire_slowly.kind, '+-');
  l lock;
  r reply;
  its_fence bigint;
  its_place bigint;
  now timestamptz;
  may bool;
BEGIN
  IF plain_kind <> 'x' AND (plain_kind !~ '^(r|p[1-9][0-9]*(/[1-9][0-9]*)?)$' OR plain_kind <> acquire_slowly.kind) THEN
    RAISE EXCEPTION 'the kind is x, r, p and a number, or that with / and how many to take, not "%"', acquire_slowly.kind USING ERRCODE = '22023';
  END IF;
  l := take(acquire_slowly.name, make => true);
  its_fence := extend(l, acquire_slowly.token, ttl);
  IF its_fence IS NULL THEN
    -- Waiters go first.
    IF l.waiters > 0 AND NOT wait THEN l := put(serve(l, acquire_slowly.session)); END IF;
    now := clock_timestamp();
    may := l.waiters = 0 AND may_enter(l, plain_kind, now);
    -- The lease that lasted the longest may have been ended early, in a quarantine.
    IF NOT may AND NOT wait AND l.waiters = 0 AND l.kind <> 'x' THEN
      l := put(settle(l, now));
      may := may_enter(l, plain_kind, now);
    END IF;
    IF may THEN
      l := enter(l, plain_kind, acquire_slowly.token, acquire_slowly.who, ttl, NULL, now);
      l := put(l);
      its_fence := l.fence;
    ELSIF wait THEN
      its_place := coalesce(acquire_slowly.place, next_place(l));
      INSERT INTO waiter (name, place, token, who, kind, chains, ttl, session, bell)
        VALUES (acquire_slowly.name, its_place, acquire_slowly.token, acquire_slowly.who, plain_kind,
          acquire_slowly.kind = 'x+', acquire_slowly.ttl, acquire_slowly.session, acquire_slowly.bell)
        ON CONFLICT ON CONSTRAINT waiter_token_key DO NOTHING;
      IF FOUND THEN
        l.waiters := l.waiters + 1;
        l.head := least(l.head, its_place - 1);
        l.tail := greatest(l.tail, its_place);
      END IF;
      l := put(serve(l, acquire_slowly.session));
      its_fence := extend(l, acquire_slowly.token, ttl);
    END IF;
  END IF;
  IF its_fence IS NOT NULL THEN
    r.status := 'granted';
    r.fence := its_fence;
    RETURN r;
  END IF;
  r := describe(l, own => wait::int);
  r.status := 'busy';
  IF wait THEN
    SELECT w.place INTO r.place FROM waiter w WHERE w.token = acquire_slowly.token;
    r.status := CASE WHEN FOUND THEN 'waiting' ELSE 'gone' END;
  END IF;
  RETURN r;
END $$;

CREATE OR REPLACE FUNCTION acquire(
  name text, token uuid, who text, kind text, ttl int, session uuid, bell bool, wait bool, place bigint, longest int,
  durable bool
) RETURNS reply LANGUAGE plpgsql AS $$
DECLARE
  r reply;
  setting text;
BEGIN
  IF longest > 0 THEN
    r.left_ms := quarantine_left(longest);
    IF r.left_ms > 0 THEN
      r.status := 'quarantined';
      RETURN r;
    END IF;
  END IF;
  -- The fast path, in one statement: an exclusive lock that is free and has no waiters. Where others of the session wait,
  -- it has some.
  IF kind IN ('x', 'x-') THEN
    UPDATE lock k SET uses = k.uses + 1, ver = (k.uses + 1) / 32, fence = greatest(k.fence + k.chain + 1, micros()),
      chain = 0, token = acquire.token, who = acquire.who, session = NULL, since = clock_timestamp(),
      expires = clock_timestamp() + ttl * interval '1 ms'
    WHERE k.ctid = (SELECT n.ctid FROM lock n WHERE n.name = acquire.name ORDER BY n.ver DESC LIMIT 1)
      AND CASE WHEN k.waiters = 0 AND k.expires <= clock_timestamp() AND k.kind = 'x'
        THEN pg_try_advisory_xact_lock(guard(acquire.name)) END
    RETURNING k.fence INTO r.fence;
  END IF;
  IF r.fence > 0 THEN
    r.status := 'granted';
  ELSE
    r := acquire_slowly(name, token, who, kind, ttl, session, bell, wait, place);
  END IF;
  setting := flush(durable AND r.status = 'granted');
  RETURN r;
END $$;


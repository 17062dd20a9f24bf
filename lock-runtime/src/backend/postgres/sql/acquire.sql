-- acquire(name, token, who, kind, ttl, session, bell, wait, place, longest, durable) → reply: takes a lock that may be
-- held and that nobody waits for, or joins the queue. A token that holds the lock already is extended instead of
-- finding itself in the way.
--
-- kind     x, r, p3; x+ may be granted the lock together with others of its session, x- is x
-- bell     whether the session holds its bell, and may be notified
-- wait     false to try once
-- place    that of an earlier token of the same waiter, or null
-- longest  the longest ttl of all, for the quarantine; 0 for no quarantine
-- durable  whether a grant waits for the disk

-- The most common case in one statement: an exclusive lock that is free and that nobody waits for. Returns the fence,
-- or null.
CREATE OR REPLACE FUNCTION take_free(name text, token uuid, who text, ttl int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  its_fence bigint;
BEGIN
  UPDATE lock k SET uses = k.uses + 1, ver = (k.uses + 1) / 32, fence = greatest(k.fence + k.chain + 1, micros()),
    chain = 0, token = take_free.token, who = take_free.who, session = NULL, since = clock_timestamp(),
    expires = clock_timestamp() + ttl * interval '1 ms'
  WHERE k.ctid = (SELECT n.ctid FROM lock n WHERE n.name = take_free.name ORDER BY n.ver DESC LIMIT 1)
    AND k.waiters = 0 AND k.expires <= clock_timestamp() AND k.kind = 'x'
  RETURNING k.fence INTO its_fence;
  IF NOT FOUND OR pg_try_advisory_xact_lock(guard(take_free.name)) THEN RETURN its_fence; END IF;
  UPDATE lock k SET token = NULL, expires = '-infinity'
  WHERE k.ctid = (SELECT n.ctid FROM lock n WHERE n.name = take_free.name ORDER BY n.ver DESC LIMIT 1);
  RETURN NULL;
END $$;

-- All of acquire but the quarantine and the commit.
CREATE OR REPLACE FUNCTION acquire_one(
  name text, token uuid, who text, kind text, ttl int, session uuid, bell bool, wait bool, place bigint
) RETURNS reply LANGUAGE plpgsql AS $$
DECLARE
  plain_kind text := rtrim(acquire_one.kind, '+-');
  l lock;
  r reply;
  its_fence bigint;
  its_place bigint;
BEGIN
  IF plain_kind = 'x' THEN
    its_fence := take_free(acquire_one.name, acquire_one.token, acquire_one.who, ttl);
  ELSIF plain_kind !~ '^(r|p[1-9][0-9]*)$' OR plain_kind <> acquire_one.kind THEN
    RAISE EXCEPTION 'the kind is x, r, or p and a number, not "%"', acquire_one.kind USING ERRCODE = '22023';
  END IF;
  IF its_fence IS NULL THEN
    l := take(acquire_one.name, make => true);
    its_fence := extend(l, acquire_one.token, ttl);
  END IF;
  IF its_fence IS NULL AND l.kind LIKE 'p%' AND plain_kind LIKE 'p%' AND l.kind <> plain_kind
    AND l.expires > clock_timestamp()
  THEN
    r.status := 'differs';
    r.kind := l.kind;
    RETURN r;
  END IF;
  IF its_fence IS NULL THEN
    -- Waiters go first.
    IF l.waiters > 0 AND NOT wait THEN l := put(serve(l, acquire_one.session)); END IF;
    IF l.waiters = 0 AND may_enter(l, plain_kind, clock_timestamp()) THEN
      l := enter(l, plain_kind, acquire_one.token, acquire_one.who, ttl, NULL, clock_timestamp());
      l := put(l);
      its_fence := l.fence;
    ELSIF wait THEN
      its_place := coalesce(acquire_one.place, next_place(l));
      INSERT INTO waiter (name, place, token, who, kind, chains, ttl, session, bell)
        VALUES (acquire_one.name, its_place, acquire_one.token, acquire_one.who, plain_kind,
          acquire_one.kind = 'x+', acquire_one.ttl, acquire_one.session, acquire_one.bell)
        ON CONFLICT ON CONSTRAINT waiter_token_key DO NOTHING;
      IF FOUND THEN
        l.waiters := l.waiters + 1;
        l.head := least(l.head, its_place - 1);
        l.tail := greatest(l.tail, its_place);
      END IF;
      l := put(serve(l, acquire_one.session));
      its_fence := extend(l, acquire_one.token, ttl);
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
    SELECT w.place INTO r.place FROM waiter w WHERE w.token = acquire_one.token;
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
BEGIN
  IF longest > 0 THEN
    r.left_ms := quarantine_left(longest);
    IF r.left_ms > 0 THEN
      r.status := 'quarantined';
      RETURN r;
    END IF;
  END IF;
  r := acquire_one(name, token, who, kind, ttl, session, bell, wait, place);
  PERFORM flush(durable AND r.status = 'granted');
  RETURN r;
END $$;


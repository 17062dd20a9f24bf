-- The holders of a lock. Each function takes a row that this transaction has locked.

-- A kind without how many of its permits are taken.
CREATE OR REPLACE FUNCTION base_kind(kind text) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT split_part(kind, '/', 1) $$;

-- How many permits a kind takes.
CREATE OR REPLACE FUNCTION permits_of(kind text) RETURNS int LANGUAGE sql IMMUTABLE AS
$$ SELECT coalesce(nullif(split_part(kind, '/', 2), '')::int, 1) $$;

-- A kind that takes so many permits.
CREATE OR REPLACE FUNCTION kind_with(kind text, permits int) RETURNS text LANGUAGE sql STABLE AS
$$ SELECT CASE WHEN permits > 1 THEN concat(kind, '/', permits) ELSE kind END $$;

-- Whether one more of this kind may hold the lock now. If its leases have ended, the guard is taken: a transaction
-- that has asserted its fence keeps everybody out until it ends.
CREATE OR REPLACE FUNCTION may_enter(l lock, kind text, now timestamptz) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
  IF l.expires <= now THEN RETURN pg_try_advisory_xact_lock(guard(l.name)); END IF;
  IF kind = 'x' OR base_kind(kind) <> l.kind THEN RETURN false; END IF;
  RETURN kind = 'r' OR substr(l.kind, 2)::bigint >= permits_of(kind) +
    (SELECT coalesce(sum(s.permits), 0) FROM sharer s WHERE s.name = l.name AND s.fence >= l.low AND s.expires > now);
END $$;

-- Makes one more the holder, with the next fence, for ttl ms. The session is that of a waiter that has to confirm it.
CREATE OR REPLACE FUNCTION enter(l lock, kind text, token uuid, who text, ttl int, session uuid, now timestamptz)
RETURNS lock LANGUAGE plpgsql AS $$
DECLARE
  ends timestamptz := now + ttl * interval '1 ms';
  fresh bool := l.expires <= now;
BEGIN
  IF fresh AND l.kind <> 'x' THEN DELETE FROM sharer s WHERE s.name = l.name AND s.fence >= l.low; END IF;
  l.fence := greatest(l.fence + l.chain + 1, micros());
  l.chain := 0;
  l.kind := base_kind(enter.kind);
  l.since := now;
  IF fresh THEN l.low := l.fence; END IF;
  IF enter.kind = 'x' THEN
    l.token := enter.token;
    l.who := enter.who;
    l.session := enter.session;
    l.expires := ends;
  ELSE
    l.token := NULL;
    l.who := NULL;
    l.session := NULL;
    l.expires := greatest(l.expires, ends);
    INSERT INTO sharer (name, fence, token, who, session, since, expires, permits)
      VALUES (l.name, l.fence, enter.token, enter.who, enter.session, now, ends,
        permits_of(enter.kind));
  END IF;
  RETURN l;
END $$;

-- Extends the lease of a token to ttl ms from now, and writes the row. Returns its fence, or null if it has none.
CREATE OR REPLACE FUNCTION extend(l lock, token uuid, ttl int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  now timestamptz := clock_timestamp();
  ends timestamptz := now + ttl * interval '1 ms';
  its_fence bigint := l.fence;
BEGIN
  IF l.expires <= now THEN RETURN NULL; END IF;
  IF l.kind = 'x' THEN
    IF l.token IS DISTINCT FROM extend.token THEN RETURN NULL; END IF;
    l.session := NULL;
    l.expires := ends;
  ELSE
    UPDATE sharer s SET expires = ends, session = NULL
      WHERE s.name = l.name AND s.fence >= l.low AND s.token = extend.token AND s.expires > now
      RETURNING s.fence INTO its_fence;
    IF NOT FOUND THEN RETURN NULL; END IF;
    l.expires := greatest(l.expires, ends);
  END IF;
  PERFORM put(l);
  RETURN its_fence;
END $$;


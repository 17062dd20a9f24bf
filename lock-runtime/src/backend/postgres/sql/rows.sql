-- The rows of locks.

-- The clock in microseconds.
CREATE OR REPLACE FUNCTION micros() RETURNS bigint LANGUAGE sql VOLATILE AS
$$ SELECT (date_part('epoch', clock_timestamp()) * 1000000)::bigint $$;

-- How many ms are left until then, rounded up.
CREATE OR REPLACE FUNCTION millis_until(moment timestamptz, now timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT CASE WHEN moment > now THEN ceil(extract(epoch FROM moment - now) * 1000)::bigint ELSE 0 END $$;

-- How many microseconds have passed since then.
CREATE OR REPLACE FUNCTION micros_since(moment timestamptz, now timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE AS
$$ SELECT greatest(0, extract(epoch FROM now - moment) * 1000000)::bigint $$;

-- Locks the row of a lock and returns its newest version; makes the row, or returns null, where there is none.
-- A clock that is read after this is later than all earlier changes of the row.
CREATE OR REPLACE FUNCTION take(name text, make bool) RETURNS lock LANGUAGE plpgsql AS $$
DECLARE
  l lock;
BEGIN
  SELECT * INTO l FROM lock k WHERE k.name = take.name ORDER BY k.ver DESC LIMIT 1 FOR NO KEY UPDATE;
  IF FOUND OR NOT make THEN RETURN l; END IF;
  PERFORM pg_advisory_xact_lock(making(take.name));
  SELECT * INTO l FROM lock k WHERE k.name = take.name ORDER BY k.ver DESC LIMIT 1 FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    -- Waiters outlive a row that somebody has deleted.
    INSERT INTO lock (name, waiters, tail)
      SELECT take.name, count(*), coalesce(max(w.place), 0) FROM waiter w WHERE w.name = take.name
      RETURNING * INTO l;
  END IF;
  RETURN l;
END $$;

-- Writes a row that this transaction has locked, and returns it as it is then.
CREATE OR REPLACE FUNCTION put(l lock) RETURNS lock LANGUAGE plpgsql AS $$
DECLARE
  was bigint := l.ver;
BEGIN
  l.uses := l.uses + 1;
  l.ver := l.uses / 32;
  UPDATE lock k SET ver = l.ver, uses = l.uses, fence = l.fence, chain = l.chain, low = l.low, head = l.head,
    tail = l.tail, waiters = l.waiters, kind = l.kind, token = l.token, who = l.who, session = l.session,
    since = l.since, expires = l.expires
  WHERE k.name = l.name AND k.ver = was;
  IF NOT FOUND THEN RAISE EXCEPTION 'the row of the lock "%" is gone', l.name; END IF;
  RETURN l;
END $$;


-- The last grants of locks, for managers that keep a history: acquire_noted and the others do what the functions without
-- _noted do, and write to the table history. The functions without it do not look at that table, except force.
--
-- keep  how many grants of the lock to remember

-- The holders of a lock, without those that have released it.
CREATE OR REPLACE FUNCTION holders(l lock)
RETURNS TABLE (fence bigint, token uuid, who text, since timestamptz) LANGUAGE plpgsql AS $$
DECLARE
  now timestamptz := clock_timestamp();
BEGIN
  RETURN QUERY
    SELECT l.fence, l.token, l.who, l.since WHERE l.kind = 'x' AND l.token IS NOT NULL AND l.expires > now
    UNION ALL
    SELECT s.fence, s.token, s.who, s.since FROM sharer s
      WHERE l.kind <> 'x' AND s.name = l.name AND s.fence >= l.low AND s.token IS NOT NULL AND s.expires > now;
END $$;

-- Notes the holders that are not noted yet, and forgets what is too much; null keeps everything.
CREATE OR REPLACE FUNCTION note_holders(name text, keep int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  l lock;
BEGIN
  SELECT * INTO l FROM lock k WHERE k.name = note_holders.name ORDER BY k.ver DESC LIMIT 1;
  INSERT INTO history (name, fence, token, who, kind, since)
    SELECT l.name, h.fence, h.token, h.who, l.kind, h.since FROM holders(l) h
    ON CONFLICT DO NOTHING;
  IF FOUND AND keep IS NOT NULL THEN
    DELETE FROM history g WHERE g.name = l.name AND g.fence <=
      (SELECT o.fence FROM history o WHERE o.name = l.name ORDER BY o.fence DESC OFFSET keep LIMIT 1);
  END IF;
END $$;

-- Notes how the grants of these tokens have ended.
CREATE OR REPLACE FUNCTION note_end(name text, tokens uuid[], how text, moment timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE history g SET until = moment, how = note_end.how
    WHERE g.name = note_end.name AND g.token = ANY (tokens) AND g.until IS NULL;
END $$;

-- most  as in acquire_unless_full, or null for acquire
CREATE OR REPLACE FUNCTION acquire_noted(
  name text, token uuid, who text, kind text, ttl int, session uuid, bell bool, wait bool, place bigint, longest int,
  durable bool, most int, keep int
) RETURNS reply LANGUAGE plpgsql AS $$
DECLARE
  r reply;
BEGIN
  IF most IS NULL THEN
    r := acquire(name, token, who, kind, ttl, session, bell, wait, place, longest, durable);
  ELSE
    r := acquire_unless_full(name, token, who, kind, ttl, session, bell, place, longest, durable, most);
  END IF;
  PERFORM note_holders(name, keep);
  RETURN r;
END $$;

CREATE OR REPLACE FUNCTION ask_noted(
  name text, tokens uuid[], ttls int[], session uuid, longest int, durable bool, keep int
) RETURNS standings LANGUAGE plpgsql AS $$
DECLARE
  s standings := ask(name, tokens, ttls, session, longest, durable);
BEGIN
  PERFORM note_holders(name, keep);
  RETURN s;
END $$;

CREATE OR REPLACE FUNCTION adopt_noted(
  name text, token uuid, who text, kind text, ttl int, ticket text, longest int, durable bool, keep int
) RETURNS reply LANGUAGE plpgsql AS $$
DECLARE
  r reply := adopt(name, token, who, kind, ttl, ticket, longest, durable);
BEGIN
  PERFORM note_holders(name, keep);
  RETURN r;
END $$;

CREATE OR REPLACE FUNCTION release_noted(
  name text, token uuid, rest int, leave bool, session uuid, longest int, keep int
) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
  -- Locks the row, so that the end is not later than the next grant.
  l lock := take(release_noted.name, make => false);
  now timestamptz := clock_timestamp();
  ours bool := release(name, token, rest, leave, session, longest);
BEGIN
  IF ours THEN PERFORM note_end(name, ARRAY[token], 'released', now); END IF;
  PERFORM note_holders(name, keep);
  RETURN ours;
END $$;

CREATE OR REPLACE FUNCTION downgrade_noted(name text, token uuid, session uuid, longest int, keep int) RETURNS bool
LANGUAGE plpgsql AS $$
DECLARE
  ours bool := downgrade(name, token, session, longest);
BEGIN
  PERFORM note_holders(name, keep);
  RETURN ours;
END $$;

CREATE OR REPLACE FUNCTION issue_noted(name text, token uuid, ticket text, "time" int, durable bool) RETURNS bool
LANGUAGE plpgsql AS $$
DECLARE
  ours bool := issue(name, token, ticket, "time", durable);
BEGIN
  IF ours THEN PERFORM note_end(name, ARRAY[token], 'released', clock_timestamp()); END IF;
  RETURN ours;
END $$;

-- grants(name) → the grants that are remembered, the newest first, and whether each holds the lock now. Moments are in
-- microseconds; how is null where a grant has not ended, or its lease expired.
CREATE OR REPLACE FUNCTION grants(name text)
RETURNS TABLE (kind text, who text, fence bigint, since_us bigint, until_us bigint, how text, held bool)
LANGUAGE plpgsql AS $$
DECLARE
  l lock;
  tokens uuid[];
BEGIN
  SELECT * INTO l FROM lock k WHERE k.name = grants.name ORDER BY k.ver DESC LIMIT 1;
  tokens := ARRAY(SELECT h.token FROM holders(l) h);
  RETURN QUERY
    SELECT g.kind, holder_name(g.token, g.who), g.fence, (extract(epoch FROM g.since) * 1000000)::bigint,
      (extract(epoch FROM g.until) * 1000000)::bigint, g.how, g.token = ANY (tokens)
    FROM history g WHERE g.name = grants.name ORDER BY g.fence DESC;
END $$;


-- ask_to_yield(name) → how many hold the lock: notes that somebody would like to have it, which they find within two
-- seconds.
CREATE OR REPLACE FUNCTION ask_to_yield(name text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
  now timestamptz := clock_timestamp();
  l lock;
  told int;
BEGIN
  PERFORM flush(false);
  DELETE FROM asked a WHERE a.since < now - interval '1 day';
  SELECT * INTO l FROM lock k WHERE k.name = ask_to_yield.name ORDER BY k.ver DESC LIMIT 1;
  -- Not earlier than their grants, also where the clock has gone back.
  INSERT INTO asked AS a (token, since)
    SELECT h.token, greatest(clock_timestamp(), h.since) FROM (
      SELECT l.token, l.since WHERE l.kind = 'x' AND l.expires > now
      UNION ALL
      SELECT s.token, s.since FROM sharer s
        WHERE s.name = l.name AND s.fence >= l.low AND l.kind <> 'x' AND s.expires > now
    ) h WHERE h.token IS NOT NULL
    ON CONFLICT ON CONSTRAINT asked_pkey DO UPDATE SET since = greatest(a.since, excluded.since);
  GET DIAGNOSTICS told = ROW_COUNT;
  RETURN told;
END $$;

-- standing(names, tokens) → for each token 0 if it does not hold its lock any more, as held says; 2 if it does and its
-- holder was asked to yield; else 1. In a chain, the holders have one token: those before may have been asked.
CREATE OR REPLACE FUNCTION standing(names text[], tokens uuid[]) RETURNS bigint[] LANGUAGE sql STABLE AS $$
  SELECT array_agg(CASE
      WHEN NOT h.held THEN 0
      WHEN EXISTS (SELECT FROM asked a WHERE a.token = h.token AND a.since >= coalesce(
        (SELECT max(s.since) FROM sharer s WHERE s.name = h.name AND s.token = h.token),
        (SELECT k.since FROM lock k WHERE k.name = h.name ORDER BY k.ver DESC LIMIT 1))) THEN 2
      ELSE 1 END ORDER BY h.number)
  FROM unnest(held(names, tokens), names, tokens) WITH ORDINALITY AS h (held, name, token, number)
$$;


-- Whether the holders of a lock share it, those with this fence among them. Rows of sharers outlive a row of the lock that
-- somebody has deleted.
CREATE OR REPLACE FUNCTION is_shared(name text, fence bigint) RETURNS bool LANGUAGE sql STABLE AS $$
  SELECT coalesce((SELECT k.kind <> 'x' AND k.low <= is_shared.fence FROM lock k WHERE k.name = is_shared.name
    ORDER BY k.ver DESC LIMIT 1), false)
$$;

-- held(names, tokens) → for each token whether it still holds its lock, if nothing but time has passed since: holders ask
-- now and then, and learn that their lock was taken by force.
CREATE OR REPLACE FUNCTION held(names text[], tokens uuid[]) RETURNS bool[] LANGUAGE sql STABLE AS $$
  SELECT array_agg(coalesce(
      (SELECT k.token = a.token FROM lock k WHERE k.name = a.name ORDER BY k.ver DESC LIMIT 1), false)
    OR EXISTS (SELECT FROM sharer s WHERE s.name = a.name AND s.token = a.token AND is_shared(s.name, s.fence))
    ORDER BY a.number)
  FROM unnest(names, tokens) WITH ORDINALITY AS a (name, token, number)
$$;


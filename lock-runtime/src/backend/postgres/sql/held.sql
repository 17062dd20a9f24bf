-- held(names, tokens) → for each token whether it still holds its lock, if nothing but time has passed since: holders ask
-- now and then, and learn that their lock was taken by force.
CREATE OR REPLACE FUNCTION held(names text[], tokens uuid[]) RETURNS bool[] LANGUAGE sql STABLE AS $$
  SELECT array_agg(coalesce(
      (SELECT k.token = a.token FROM lock k WHERE k.name = a.name ORDER BY k.ver DESC LIMIT 1), false)
    OR EXISTS (SELECT FROM sharer s WHERE s.name = a.name AND s.token = a.token) ORDER BY a.number)
  FROM unnest(names, tokens) WITH ORDINALITY AS a (name, token, number)
$$;


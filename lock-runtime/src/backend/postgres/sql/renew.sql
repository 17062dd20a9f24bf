-- renew(names, tokens, ttls, durable) → for each whether the lease was ours and is extended to its ttl. Also confirms
-- a lock that was handed over. Up to 100 at once.

CREATE OR REPLACE FUNCTION renew_one(name text, token uuid, ttl int) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN
  UPDATE lock k SET uses = k.uses + 1, ver = (k.uses + 1) / 32, session = NULL,
    expires = clock_timestamp() + ttl * interval '1 ms'
  WHERE k.ctid = (SELECT n.ctid FROM lock n WHERE n.name = renew_one.name ORDER BY n.ver DESC LIMIT 1)
    AND k.token = renew_one.token AND k.expires > clock_timestamp();
  RETURN FOUND OR extend(take(renew_one.name, make => false), renew_one.token, ttl) IS NOT NULL;
END $$;

-- The order in which calls about these locks are carried out: sorted, so that two such batches do not wait for each
-- other in a circle.
CREATE OR REPLACE FUNCTION by_name(names text[]) RETURNS int[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  IF cardinality(names) = 1 THEN RETURN '{1}'; END IF;
  RETURN ARRAY(SELECT u.at::int FROM unnest(names) WITH ORDINALITY u (name, at) ORDER BY u.name COLLATE "C", u.at);
END $$;

CREATE OR REPLACE FUNCTION renew(names text[], tokens uuid[], ttls int[], durable bool) RETURNS bool[]
LANGUAGE plpgsql AS $$
DECLARE
  i int;
  ours bool[] := array_fill(false, ARRAY[cardinality(names)]);
BEGIN
  FOREACH i IN ARRAY by_name(names) LOOP
    ours[i] := renew_one(names[i], tokens[i], ttls[i]);
  END LOOP;
  PERFORM flush(durable AND true = ANY (ours));
  RETURN ours;
END $$;


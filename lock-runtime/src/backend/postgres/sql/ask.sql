-- ask(name, tokens, ttls, session, longest, durable) → standings: where do these tokens of one session stand? A token
-- that holds the lock is extended to its ttl. Serves the queue where a lease has ended. Never joins: a token that is
-- queued again after a late grant would make two holders.
--
-- longest, durable  as in acquire. In the quarantine there are no fences in the answer, and left_ms is what is left
--                   of that
CREATE OR REPLACE FUNCTION ask(
  name text, tokens uuid[], ttls int[], session uuid, longest int, durable bool
) RETURNS standings LANGUAGE plpgsql AS $$
DECLARE
  l lock;
  was lock;
  its_fence bigint;
  before uuid[];
  waiting uuid[];
  r reply;
  s standings;
BEGIN
  s.left_ms := quarantine_left(longest);
  IF s.left_ms > 0 THEN RETURN s; END IF;
  SELECT * INTO l FROM lock k WHERE k.name = ask.name ORDER BY k.ver DESC LIMIT 1;
  waiting := ARRAY(SELECT w.token FROM waiter w WHERE w.token = ANY (tokens));
  s.fences := array_fill(0::bigint, ARRAY[cardinality(tokens)]);
  IF cardinality(waiting) < cardinality(tokens) OR l.name IS NULL OR l.kind <> 'x' OR l.expires <= clock_timestamp()
  THEN
    -- All other answers need no lock of the row.
    l := take(ask.name, make => cardinality(waiting) > 0);
    IF l.name IS NOT NULL THEN
      before := ARRAY(SELECT w.token FROM waiter w WHERE w.token = ANY (tokens));
      was := l;
      l := serve(l, ask.session);
      IF l IS DISTINCT FROM was THEN l := put(l); END IF;
    END IF;
    waiting := ARRAY(SELECT w.token FROM waiter w WHERE w.token = ANY (tokens));
    IF l.chain > 0 AND l.fence <> was.fence THEN
      -- Followers in a chain learn of it from its push.
      waiting := before;
    END IF;
    FOR i IN 1 .. cardinality(tokens) LOOP
      its_fence := NULL;
      IF l.token = tokens[i] OR l.kind <> 'x' THEN
        its_fence := extend(l, tokens[i], ttls[i]);
        IF its_fence IS NOT NULL THEN l := take(ask.name, make => false); END IF;
      END IF;
      s.fences[i] := coalesce(its_fence, CASE WHEN tokens[i] = ANY (waiting) THEN 0 ELSE -1 END);
    END LOOP;
  END IF;
  PERFORM flush(durable AND 0 < ANY (s.fences));
  r := describe(l, own => 1);
  s.left_ms := r.left_ms;
  s.holder := r.holder;
  s.others := r.others;
  s.longest_ms := r.longest_ms;
  SELECT coalesce(array_position(tokens, w.token), 0) INTO s.first
    FROM (SELECT v.token FROM waiter v WHERE v.name = l.name AND v.place > l.head ORDER BY v.place, v.token LIMIT 1) w;
  s.first := coalesce(s.first, 0);
  RETURN s;
END $$;


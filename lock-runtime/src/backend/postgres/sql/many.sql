-- many(actions, names, tokens, whos, ttls, session, bell, longest, durable) → for each call its reply, with its number: up
-- to 64 calls about exclusive locks in one transaction, so that the cost of a transaction is paid once. Calls of one name
-- are carried out in their order.
--
-- actions  x, x+, x- acquire as those kinds do, and wait; = renews; - releases

-- Locks the row that an acquire needs, if there is none yet.
CREATE OR REPLACE FUNCTION make(name text) RETURNS tid LANGUAGE plpgsql AS $$
BEGIN
  PERFORM take(make.name, make => true);
  RETURN NULL;
END $$;

-- The fast paths of acquire and release in one statement, for the first call of each name. Returns the numbers of the
-- calls that it has carried out, with the fences of the grants; the others are left to the slow paths. It locks the rows
-- of all calls, sorted by name, so that two batches do not wait for each other in a circle: the slow paths find every
-- row locked.
CREATE OR REPLACE FUNCTION many_fast(
  actions text[], names text[], tokens uuid[], whos text[], ttls int[], grants bool,
  OUT calls int[], OUT fences bigint[]
) LANGUAGE plpgsql AS $$
BEGIN
  WITH done AS (
    UPDATE lock k SET uses = k.uses + 1, ver = (k.uses + 1) / 32,
      fence = CASE WHEN c.acquires THEN greatest(k.fence + k.chain + 1, micros()) ELSE k.fence END,
      chain = CASE WHEN c.acquires THEN 0 ELSE k.chain END,
      token = CASE WHEN c.acquires THEN c.token END,
      who = CASE WHEN c.acquires THEN c.who ELSE k.who END,
      session = NULL, since = clock_timestamp(),
      expires = CASE WHEN c.acquires THEN clock_timestamp() + c.ttl * interval '1 ms' ELSE '-infinity' END
    FROM (
      SELECT f.*, coalesce(
        (SELECT n.ctid FROM lock n WHERE n.name = f.name ORDER BY n.ver DESC LIMIT 1 FOR NO KEY UPDATE),
        CASE WHEN f.acquires THEN make(f.name) END) AS newest
      FROM (
        SELECT DISTINCT ON (u.name COLLATE "C") u.action LIKE 'x%' AS acquires, u.action = '=' AS renews, u.name,
          u.token, u.who, u.ttl, u.call::int
        FROM unnest(actions, names, tokens, whos, ttls) WITH ORDINALITY u (action, name, token, who, ttl, call)
        ORDER BY u.name COLLATE "C", u.call
      ) f OFFSET 0
    ) c
    WHERE k.ctid = c.newest AND k.waiters = 0 AND CASE
      WHEN c.renews THEN false
      WHEN c.acquires THEN CASE WHEN grants AND k.expires <= clock_timestamp() AND k.kind = 'x'
        THEN pg_try_advisory_xact_lock(guard(c.name)) END
      ELSE k.token = c.token AND k.expires > clock_timestamp()
    END
    RETURNING c.call, CASE WHEN c.acquires THEN k.fence END AS fence
  )
  SELECT array_agg(d.call), array_agg(d.fence) INTO calls, fences FROM done d;
END $$;

CREATE OR REPLACE FUNCTION many(
  actions text[], names text[], tokens uuid[], whos text[], ttls int[], session uuid, bell bool, longest int,
  durable bool
) RETURNS SETOF reply LANGUAGE plpgsql AS $$
DECLARE
  quarantine CONSTANT bigint := quarantine_left(longest);
  done int[];
  fences bigint[];
  needs_flush bool;
  i int;
  ours bool;
  r reply;
  setting text;
BEGIN
  SELECT f.calls, f.fences INTO done, fences FROM many_fast(actions, names, tokens, whos, ttls, quarantine = 0) f;
  RETURN QUERY SELECT CASE WHEN d.fence IS NULL THEN 'ours' ELSE 'granted' END, d.fence, NULL::bigint, NULL::bigint,
    NULL, NULL::int, NULL::bigint, NULL, d.call FROM unnest(done, fences) d (call, fence);
  needs_flush := coalesce(0 < ANY (fences), false);
  IF cardinality(done) = cardinality(names) THEN
    setting := flush(durable AND needs_flush);
    RETURN;
  END IF;
  FOREACH i IN ARRAY by_name(names) LOOP
    CONTINUE WHEN i = ANY (done);
    r := NULL;
    ours := NULL;
    IF actions[i] = '-' THEN
      ours := release_slowly(names[i], tokens[i], 0, false, session, longest);
    ELSIF actions[i] = '=' THEN
      ours := renew_one(names[i], tokens[i], ttls[i]);
      needs_flush := needs_flush OR ours;
    ELSIF quarantine > 0 THEN
      r.status := 'quarantined';
      r.left_ms := quarantine;
    ELSE
      r := acquire_slowly(names[i], tokens[i], whos[i], actions[i], ttls[i], session, bell, true, NULL);
      needs_flush := needs_flush OR r.status = 'granted';
    END IF;
    IF ours IS NOT NULL THEN r.status := CASE WHEN ours THEN 'ours' ELSE 'not ours' END; END IF;
    r.call := i;
    RETURN NEXT r;
  END LOOP;
  setting := flush(durable AND needs_flush);
END $$;


-- release(name, token, rest, leave, session, longest) → whether the lock was ours: lets go of it and hands it on.
--
-- rest     for how many ms it stays closed; 0 for none. Nobody is its holder meanwhile, so that neither a late
--          renewal nor a second release finds it
-- leave    whether the token leaves the queue first; a grant that raced is passed on
-- longest  as in acquire: nothing is handed on in the quarantine

-- All of release but its fast path and the commit.
CREATE OR REPLACE FUNCTION release_slowly(name text, token uuid, rest int, leave bool, session uuid, longest int)
RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
  l lock;
  was lock;
  now timestamptz;
  ours bool := false;
BEGIN
  l := take(release_slowly.name, make => false);
  IF l.name IS NULL THEN RETURN false; END IF;
  was := l;
  IF leave THEN
    DELETE FROM waiter w WHERE w.token = release_slowly.token AND w.name = l.name;
    IF FOUND THEN l.waiters := l.waiters - 1; END IF;
  END IF;
  now := clock_timestamp();
  IF l.kind <> 'x' THEN
    UPDATE sharer s SET token = NULL, who = '-' || holder_name(s.token, s.who), session = NULL,
        expires = CASE WHEN rest > 0 THEN now + rest * interval '1 ms' ELSE '-infinity' END
      WHERE s.name = l.name AND s.fence >= l.low AND s.token = release_slowly.token AND s.expires > now;
    ours := FOUND;
    IF ours THEN l := settle(l, now); END IF;
  ELSIF l.token = release_slowly.token THEN
    ours := l.expires > now;
    l.who := '-' || holder_name(l.token, l.who);
    l.token := NULL;
    l.session := NULL;
    l.since := now;
    l.expires := CASE WHEN ours AND rest > 0 THEN now + rest * interval '1 ms' ELSE '-infinity' END;
  END IF;
  IF quarantine_left(longest) = 0 THEN l := serve(l, release_slowly.session); END IF;
  IF l IS DISTINCT FROM was THEN PERFORM put(l); END IF;
  RETURN ours;
END $$;

CREATE OR REPLACE FUNCTION release(name text, token uuid, rest int, leave bool, session uuid, longest int)
RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
  setting text := flush(false);
BEGIN
  IF rest = 0 AND NOT leave THEN
    UPDATE lock k SET uses = k.uses + 1, ver = (k.uses + 1) / 32, token = NULL, session = NULL,
      since = clock_timestamp(), expires = '-infinity'
    WHERE k.ctid = (SELECT n.ctid FROM lock n WHERE n.name = release.name ORDER BY n.ver DESC LIMIT 1)
      AND k.token = release.token AND k.waiters = 0 AND k.expires > clock_timestamp();
    IF FOUND THEN RETURN true; END IF;
  END IF;
  RETURN release_slowly(name, token, rest, leave, session, longest);
END $$;


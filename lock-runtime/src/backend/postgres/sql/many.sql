-- many(actions, names, tokens, whos, ttls, session, bell, longest, durable) → for each call its reply, with its number: up
-- to 64 calls about exclusive locks in one transaction, so that what it costs is paid once. Calls are carried out and
-- answered sorted by name, those of one name in their order.
--
-- actions  x, x+, x- acquire as those kinds do, and wait; = renews; - releases
CREATE OR REPLACE FUNCTION many(
  actions text[], names text[], tokens uuid[], whos text[], ttls int[], session uuid, bell bool, longest int,
  durable bool
) RETURNS SETOF reply LANGUAGE plpgsql AS $$
DECLARE
  quarantine CONSTANT bigint := quarantine_left(longest);
  needs_flush bool := false;
  i int;
  ours bool;
  r reply;
BEGIN
  FOREACH i IN ARRAY by_name(names) LOOP
    r := NULL;
    ours := NULL;
    IF actions[i] = '-' THEN
      ours := release_one(names[i], tokens[i], 0, false, session, longest);
    ELSIF actions[i] = '=' THEN
      ours := renew_one(names[i], tokens[i], ttls[i]);
      needs_flush := needs_flush OR ours;
    ELSIF quarantine > 0 THEN
      r.status := 'quarantined';
      r.left_ms := quarantine;
    ELSE
      r := acquire_one(names[i], tokens[i], whos[i], actions[i], ttls[i], session, bell, true, NULL);
      needs_flush := needs_flush OR r.status = 'granted';
    END IF;
    IF ours IS NOT NULL THEN r.status := CASE WHEN ours THEN 'ours' ELSE 'not ours' END; END IF;
    r.call := i;
    RETURN NEXT r;
  END LOOP;
  PERFORM flush(durable AND needs_flush);
END $$;


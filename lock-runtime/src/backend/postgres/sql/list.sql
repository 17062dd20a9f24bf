-- Pages of locks, sorted by name. A glob has * for any text and ? for any character; after is the last name of the page
-- before, or empty.

CREATE OR REPLACE FUNCTION like_pattern(glob text) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT translate(regexp_replace(glob, E'([\\\\%_])', E'\\\\\\1', 'g'), '*?', '%_') $$;

-- list(glob, after, most) → the names of the next locks that are held or cool down.
CREATE OR REPLACE FUNCTION list(glob text, after text, most int) RETURNS TABLE (name text) LANGUAGE plpgsql AS $$
BEGIN
  RETURN QUERY SELECT k.name FROM lock k
    WHERE k.name > after AND k.name LIKE like_pattern(glob) AND k.expires > clock_timestamp()
    ORDER BY k.name LIMIT most;
END $$;

-- overview(glob, after, most, named) → the basic facts about the next locks that are held, cool down or are waited for:
-- a row for each lock, or for each of its first holders, of which so many are named. Waiters of sessions that are gone
-- count.
--
-- kind            as the holder holds it, without its kind while nobody does: null, or /2 for two permits that cool down
-- waited_us       since the first waiter joined
-- holder…         null where there is none
CREATE OR REPLACE FUNCTION overview(glob text, after text, most int, named int)
RETURNS TABLE (
  name text, kind text, held_by int, waiting int, waited_us bigint,
  holder text, left_ms bigint, fence bigint, age_us bigint
) LANGUAGE plpgsql AS $$
DECLARE
  now timestamptz := clock_timestamp();
  l lock;
  held_as text;
  permits int;
BEGIN
  FOR l IN
    SELECT * FROM lock k
    WHERE k.name > after AND k.name LIKE like_pattern(glob) AND (k.expires > now OR k.waiters > 0)
    ORDER BY k.name LIMIT most
  LOOP
    name := l.name;
    waiting := l.waiters;
    waited_us := NULL;
    IF waiting > 0 THEN
      SELECT greatest(0, micros() - v.place) INTO waited_us
        FROM waiter v WHERE v.name = l.name AND v.place > l.head ORDER BY v.place LIMIT 1;
    END IF;
    holder := NULL;
    left_ms := NULL;
    fence := NULL;
    age_us := NULL;
    IF l.kind = 'x' THEN
      kind := CASE WHEN l.expires > now AND l.token IS NOT NULL THEN 'x' END;
      held_by := (l.expires > now)::int;
      IF held_by > 0 THEN
        holder := holder_name(l.token, l.who);
        left_ms := millis_until(l.expires, now);
        fence := l.fence;
        age_us := micros_since(l.since, now);
      END IF;
      RETURN NEXT;
      CONTINUE;
    END IF;
    SELECT CASE WHEN count(s.token) > 0 THEN l.kind END, count(*) INTO held_as, held_by
      FROM sharer s WHERE s.name = l.name AND s.fence >= l.low AND s.expires > now;
    kind := held_as;
    FOR holder, left_ms, fence, age_us, permits IN
      SELECT holder_name(s.token, s.who), millis_until(s.expires, now), s.fence, micros_since(s.since, now), s.permits
      FROM sharer s WHERE s.name = l.name AND s.fence >= l.low AND s.expires > now ORDER BY s.fence LIMIT named
    LOOP
      kind := kind_with(held_as, permits);
      RETURN NEXT;
    END LOOP;
    IF NOT FOUND THEN RETURN NEXT; END IF;
  END LOOP;
END $$;


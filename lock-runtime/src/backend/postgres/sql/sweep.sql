-- sweep(after, most) → the last of the next so many names behind that one, or null at the end, and how many of them
-- were deleted: locks that were neither held nor changed for an hour. A row that somebody else uses is left alone.
-- An hour is more than a clock may go back, so that fences grow over the deletion. Histories are forgotten after 32 days
-- without a grant; a page has five times as many grants as names, and ends with a history. Renewals wait for this call.
CREATE OR REPLACE FUNCTION sweep(after text, most int, OUT next text, OUT deleted int) LANGUAGE plpgsql AS $$
DECLARE
  idle CONSTANT timestamptz := clock_timestamp() - interval '1 hour';
  forgotten CONSTANT timestamptz := clock_timestamp() - interval '32 days';
  names text[];
BEGIN
  PERFORM flush(false);
  SELECT min(e.name) INTO next FROM (
    (SELECT k.name FROM lock k WHERE k.name > after ORDER BY k.name OFFSET most - 1 LIMIT 1)
    UNION ALL (SELECT g.name FROM history g WHERE g.name > after ORDER BY g.name OFFSET 5 * most - 1 LIMIT 1)
  ) e;
  WITH gone AS (
    DELETE FROM lock WHERE ctid = ANY (ARRAY(
      SELECT k.ctid FROM lock k
      WHERE k.name > after AND (next IS NULL OR k.name <= next) AND greatest(k.expires, k.since) < idle
      FOR UPDATE SKIP LOCKED
    )) RETURNING lock.name
  )
  SELECT array_agg(g.name), count(*) INTO names, deleted FROM gone g;
  DELETE FROM sharer s WHERE s.name = ANY (names);
  DELETE FROM waiter w WHERE w.name = ANY (names);
  DELETE FROM history WHERE ctid = ANY (ARRAY(
    SELECT g.ctid FROM history g WHERE g.name = ANY (ARRAY(
      SELECT n.name FROM history n WHERE n.name > after AND (next IS NULL OR n.name <= next)
      GROUP BY n.name HAVING max(n.since) < forgotten
    )) FOR UPDATE SKIP LOCKED
  ));
END $$;

-- Pages of locks, sorted by name. A pattern is one of LIKE; after is the last name of the page before, or empty.

-- list(pattern, after, most) → the names of the next locks that are held or cool down.
CREATE PROCEDURE lock_runtime_list(IN p_pattern BLOB, IN p_after VARBINARY(1155), IN p_most INT)
SQL SECURITY DEFINER
BEGIN
  SELECT name FROM lock_runtime_lock WHERE name > p_after AND name LIKE p_pattern AND expires > {clock}
    ORDER BY name LIMIT p_most;
END
//
-- overview(pattern, after, most, named) → the basic facts about the next locks that are held, cool down or are waited for: a row
-- for each lock, or for each of its first holders, of which so many are named. Waiters of sessions that are gone count.
--
-- name, kind as the holder holds it (null while nobody does, or /2 for two permits that cool down), held by, waiting, µs since the
-- first waiter joined, and of a holder, null where there is none: its name, ms left, fence, µs since its grant
CREATE PROCEDURE lock_runtime_overview(IN p_pattern BLOB, IN p_after VARBINARY(1155), IN p_most INT, IN p_named INT)
SQL SECURITY DEFINER
BEGIN
  DECLARE t BIGINT DEFAULT {clock};
  SELECT name, kind, held_by, waiting, waited, holder, left_ms, fence, age
  FROM (
    SELECT l.name,
      CASE WHEN l.kind = 'x' THEN IF(l.expires > t AND l.token IS NOT NULL, 'x', NULL)
        ELSE NULLIF(CONCAT(IF(COUNT(s.token) OVER (PARTITION BY l.name) > 0, l.kind, ''),
          IF(s.permits > 1, CONCAT('/', s.permits), '')), '') END AS kind,
      IF(l.kind = 'x', l.expires > t, COUNT(s.fence) OVER (PARTITION BY l.name)) AS held_by,
      l.waiters AS waiting,
      (SELECT GREATEST(0, t - MIN(w.place)) FROM lock_runtime_waiter w WHERE w.name = l.name AND w.place > l.head) AS waited,
      IF(l.kind = 'x', IF(l.expires > t, CONCAT_WS(' ', LOWER(HEX(l.token)), NULLIF(l.who, '')), NULL),
        IF(s.fence IS NULL, NULL, CONCAT_WS(' ', LOWER(HEX(s.token)), NULLIF(s.who, '')))) AS holder,
      CEIL((IF(l.kind = 'x', l.expires, s.expires) - t) / 1000) AS left_ms,
      IF(l.kind = 'x', l.fence, s.fence) AS fence,
      GREATEST(0, t - IF(l.kind = 'x', l.since, s.since)) AS age,
      ROW_NUMBER() OVER (PARTITION BY l.name ORDER BY s.fence) AS number
    FROM (
      SELECT * FROM lock_runtime_lock
      WHERE name > p_after AND name LIKE p_pattern AND (expires > t OR waiters > 0) ORDER BY name LIMIT p_most
    ) l LEFT JOIN lock_runtime_sharer s ON s.name = l.name AND l.kind <> 'x' AND s.fence >= l.low AND s.expires > t
  ) facts
  WHERE number <= p_named
  ORDER BY name, number;
END
//

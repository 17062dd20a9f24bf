-- sweep(after, most) → the last name of the page behind that one, or null if it was the last page: deletes the rows of the
-- locks of the page that were neither held nor changed for an hour, and the histories without a grant for 32 days. A lock that
-- somebody uses is left alone, and so is one whose guard somebody has deleted. An hour is more than a clock may go back, so
-- that fences grow over the deletion.
--
-- most  how many locks a page has, 200 at most; it has five times as many grants of histories. Renewals wait for this call
CREATE PROCEDURE lock_runtime_sweep(IN p_after VARBINARY(1155), IN p_most INT)
SQL SECURITY DEFINER
BEGIN
  DECLARE v_idle BIGINT DEFAULT {clock} - 3600000000;
  DECLARE v_forgotten BIGINT DEFAULT {clock} - 2764800000000;
  DECLARE v_locks INT DEFAULT LEAST(p_most, 200) - 1;
  DECLARE v_grants INT DEFAULT 5 * LEAST(p_most, 200) - 1;
  DECLARE v_next VARBINARY(1155);
  DECLARE v_names MEDIUMTEXT CHARACTER SET latin1;
  {begin}
  -- On a replica, a deletion of its own would stop the replication.
  {only a primary}
  -- MariaDB cuts longer lists short.
  IF @@SESSION.group_concat_max_len < 1048576 THEN SET SESSION group_concat_max_len = 1048576; END IF;
  SELECT MIN(name) INTO v_next FROM (
    (SELECT name FROM lock_runtime_lock WHERE name > p_after ORDER BY name LIMIT v_locks, 1)
    UNION ALL (SELECT name FROM lock_runtime_history WHERE name > p_after ORDER BY name LIMIT v_grants, 1)
  ) ends;
  -- A transaction that has asserted its fence keeps the guard.
  SELECT JSON_ARRAYAGG(HEX(l.name)) INTO v_names
    FROM lock_runtime_lock l FORCE INDEX (PRIMARY) STRAIGHT_JOIN lock_runtime_guard g FORCE INDEX (PRIMARY) ON g.name = l.name
    WHERE l.name > p_after AND (v_next IS NULL OR l.name <= v_next) AND GREATEST(l.expires, l.since) < v_idle
    FOR UPDATE SKIP LOCKED;
  IF v_names IS NOT NULL THEN
    DELETE s FROM {names} n STRAIGHT_JOIN lock_runtime_sharer s FORCE INDEX (PRIMARY) ON s.name = UNHEX(n.name);
    DELETE e FROM {names} n STRAIGHT_JOIN lock_runtime_entered e FORCE INDEX (PRIMARY) ON e.name = UNHEX(n.name);
    DELETE w FROM {names} n STRAIGHT_JOIN lock_runtime_waiter w FORCE INDEX (PRIMARY) ON w.name = UNHEX(n.name);
    DELETE g FROM {names} n STRAIGHT_JOIN lock_runtime_guard g FORCE INDEX (PRIMARY) ON g.name = UNHEX(n.name);
    DELETE l FROM {names} n STRAIGHT_JOIN lock_runtime_lock l FORCE INDEX (PRIMARY) ON l.name = UNHEX(n.name);
  END IF;
  DELETE h FROM (
    SELECT name FROM lock_runtime_history WHERE name > p_after AND (v_next IS NULL OR name <= v_next)
      GROUP BY name HAVING MAX(since) < v_forgotten
  ) o STRAIGHT_JOIN lock_runtime_history h FORCE INDEX (PRIMARY) ON h.name = o.name;
  COMMIT;
  SELECT v_next;
END
//

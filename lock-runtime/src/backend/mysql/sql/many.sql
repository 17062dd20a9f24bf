-- many(calls, session, longest) → for each call its reply, with its number: up to 64 calls about exclusive locks in one
-- transaction, so that the cost of a commit is paid once. Calls of one name are carried out in their order.
--
-- calls  an array of JSON, sorted by name, so that two batches do not wait for each other in a circle: for each call an array
--        of its number, what it does (x acquires and waits, - releases), the name, the token, the ttl in ms, who, and 1 if it
--        is the first of its name, else 0. Name, token and who are hexadecimal digits
--
-- The first calls of all names that find a lock free, or their own, are carried out together: a statement for all of them
-- costs less than one for each.
CREATE PROCEDURE lock_runtime_many(
  IN p_calls MEDIUMTEXT CHARACTER SET latin1, IN p_session BINARY(16), IN p_longest BIGINT
)
SQL SECURITY DEFINER
BEGIN
  DECLARE v_left BIGINT DEFAULT 0;
  DECLARE v_count, v_at, v_number, v_ttl INT DEFAULT 0;
  DECLARE v_name VARBINARY(1155);
  DECLARE v_token BINARY(16);
  DECLARE v_who BLOB;
  DECLARE v_ours BOOL;
  DECLARE t BIGINT;
  DECLARE v_released, v_free, v_call TEXT CHARACTER SET latin1;
  {begin}
  IF p_longest > 0 THEN CALL lock_runtime_quarantine_left(p_longest, v_left); END IF;
  -- A list that is cut short would end with another number.
  IF @@SESSION.group_concat_max_len < 1024 THEN SET SESSION group_concat_max_len = 1024; END IF;
  -- MySQL locks no rows beside a table of JSON itself. The index is named since a scan would lock the rows of all locks.
  SELECT COUNT(*) INTO v_count FROM (SELECT j.name FROM {calls} j) c
    STRAIGHT_JOIN lock_runtime_lock l FORCE INDEX (PRIMARY) ON l.name = UNHEX(c.name) FOR UPDATE;
  {only a primary}
  SET t = {clock};
  -- A row that was made meanwhile may be somebody else's to write.
  SELECT COALESCE(GROUP_CONCAT(c.number), '') INTO v_released
    FROM (SELECT j.number, j.name, j.token FROM {calls} j WHERE j.first AND j.action = '-') c
      STRAIGHT_JOIN lock_runtime_lock l FORCE INDEX (PRIMARY) ON l.name = UNHEX(c.name)
    WHERE l.kind = 'x' AND l.token = UNHEX(c.token) AND l.expires > t AND l.waiters = 0 FOR UPDATE SKIP LOCKED;
  -- A guard that a transaction keeps that has asserted its fence keeps everybody out.
  SELECT COALESCE(GROUP_CONCAT(c.number), '') INTO v_free
    FROM (SELECT j.number, j.name FROM {calls} j WHERE j.first AND j.action = 'x') c
      STRAIGHT_JOIN lock_runtime_lock l FORCE INDEX (PRIMARY) ON l.name = UNHEX(c.name)
      STRAIGHT_JOIN lock_runtime_guard g FORCE INDEX (PRIMARY) ON g.name = l.name
    WHERE v_left = 0 AND l.kind = 'x' AND l.expires <= t AND l.waiters = 0 FOR UPDATE SKIP LOCKED;
  -- None of these inserts a row: an update that joins tables would write each row of theirs twice.
  IF v_released <> '' THEN
    INSERT INTO lock_runtime_lock (name) SELECT UNHEX(c.name) FROM {calls} c WHERE FIND_IN_SET(c.number, v_released)
      ON DUPLICATE KEY UPDATE lock_runtime_lock.who =
          CONCAT('-', CONCAT_WS(' ', LOWER(HEX(lock_runtime_lock.token)), NULLIF(lock_runtime_lock.who, ''))),
        lock_runtime_lock.token = NULL, session = NULL, since = t, expires = 0;
  END IF;
  IF v_free <> '' THEN
    INSERT INTO lock_runtime_lock (name, token, who, expires)
      SELECT UNHEX(c.name), UNHEX(c.token), UNHEX(c.who), t + c.ttl * 1000 FROM {calls} c WHERE FIND_IN_SET(c.number, v_free)
      -- Whatever the list says, a lock that is held or waited for stays as it is.
      ON DUPLICATE KEY UPDATE fence = IF(expires <= t AND waiters = 0, GREATEST(fence + 1, t), fence),
        low = IF(expires <= t AND waiters = 0, fence, low),
        lock_runtime_lock.token = IF(expires <= t AND waiters = 0, VALUES(token), lock_runtime_lock.token),
        lock_runtime_lock.who = IF(expires <= t AND waiters = 0, VALUES(who), lock_runtime_lock.who),
        session = IF(expires <= t AND waiters = 0, NULL, session),
        since = IF(expires <= t AND waiters = 0, t, since),
        expires = IF(expires <= t AND waiters = 0, VALUES(expires), expires);
    INSERT INTO lock_runtime_guard (name, low)
      SELECT l.name, l.fence
        FROM {calls} c STRAIGHT_JOIN lock_runtime_lock l FORCE INDEX (PRIMARY) ON l.name = UNHEX(c.name)
        WHERE FIND_IN_SET(c.number, v_free) AND l.token = UNHEX(c.token)
      ON DUPLICATE KEY UPDATE low = VALUES(low), alone = TRUE;
  END IF;
  SELECT IF(c.action = 'x', 'granted', 'ours'), IF(c.action = 'x', l.fence, NULL), NULL, NULL, NULL, NULL, NULL, NULL, c.number
    FROM {calls} c STRAIGHT_JOIN lock_runtime_lock l FORCE INDEX (PRIMARY) ON l.name = UNHEX(c.name)
    WHERE FIND_IN_SET(c.number, v_released) OR FIND_IN_SET(c.number, v_free) AND l.token = UNHEX(c.token);
  SET v_count = JSON_LENGTH(p_calls);
  -- One by one: a cursor would need a table of its own, which MariaDB keeps on disk.
  IF FOUND_ROWS() < v_count THEN
    WHILE v_at < v_count DO
      SET v_call = JSON_EXTRACT(p_calls, CONCAT('$[', v_at, ']')), v_number = JSON_EXTRACT(v_call, '$[0]'), v_at = v_at + 1;
      IF NOT (FIND_IN_SET(v_number, v_released) OR FIND_IN_SET(v_number, v_free)) THEN
        SET v_name = UNHEX(JSON_UNQUOTE(JSON_EXTRACT(v_call, '$[2]'))), v_token = UNHEX(JSON_UNQUOTE(JSON_EXTRACT(v_call, '$[3]')));
        IF JSON_UNQUOTE(JSON_EXTRACT(v_call, '$[1]')) = '-' THEN
          CALL lock_runtime_release_in(v_name, v_token, 0, FALSE, p_session, p_longest, v_ours);
          SELECT IF(v_ours, 'ours', 'not ours'), NULL, NULL, NULL, NULL, NULL, NULL, NULL, v_number;
        ELSEIF v_left > 0 THEN
          SELECT 'quarantined', NULL, NULL, v_left, NULL, NULL, NULL, NULL, v_number;
        ELSE
          SET v_ttl = JSON_EXTRACT(v_call, '$[4]'), v_who = UNHEX(JSON_UNQUOTE(JSON_EXTRACT(v_call, '$[5]')));
          CALL lock_runtime_acquire_in(v_name, v_token, v_who, 'x', v_ttl, p_session, TRUE, NULL, NULL, v_number);
        END IF;
      END IF;
    END WHILE;
  END IF;
  COMMIT;
  {only a primary}
END
//

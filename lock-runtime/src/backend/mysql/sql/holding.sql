-- The holders of a lock. Each procedure but make and take needs the row of the lock to be locked by this transaction.

-- Makes the row of a lock, and locks it. Waiters outlive a row that somebody has deleted. A duplicate is locked as by an
-- update, so that two that make the same row do not wait for each other in a circle.
CREATE PROCEDURE lock_runtime_make(IN p_name VARBINARY(1155))
SQL SECURITY DEFINER
BEGIN
  INSERT INTO lock_runtime_lock (name, waiters, tail)
    SELECT p_name, COUNT(*), COALESCE(MAX(w.place), 0) FROM lock_runtime_waiter w WHERE w.name = p_name
    ON DUPLICATE KEY UPDATE lock_runtime_lock.fence = lock_runtime_lock.fence;
  INSERT IGNORE INTO lock_runtime_guard (name) VALUES (p_name);
END
//
-- Locks the row of a lock, and makes it if it is wanted. A clock that is read after this is later than all earlier changes
-- of the row.
CREATE PROCEDURE lock_runtime_take(IN p_name VARBINARY(1155), IN p_make BOOL, OUT p_found BOOL)
SQL SECURITY DEFINER
BEGIN
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET p_found = FALSE;
  {only a primary}
  SET p_found = TRUE;
  SELECT TRUE INTO p_found FROM lock_runtime_lock WHERE name = p_name FOR UPDATE;
  IF NOT p_found AND p_make THEN
    CALL lock_runtime_make(p_name);
    SET p_found = TRUE;
  END IF;
END
//
-- Locks the guard, unless a transaction that has asserted the fence keeps it. Makes one that somebody has deleted.
CREATE PROCEDURE lock_runtime_take_guard(IN p_name VARBINARY(1155), OUT p_taken BOOL)
SQL SECURITY DEFINER
BEGIN
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET p_taken = FALSE;
  SET p_taken = TRUE;
  SELECT TRUE INTO p_taken FROM lock_runtime_guard WHERE name = p_name FOR UPDATE SKIP LOCKED;
  IF NOT p_taken AND NOT EXISTS (SELECT 1 FROM lock_runtime_guard WHERE name = p_name) THEN
    INSERT INTO lock_runtime_guard (name) VALUES (p_name);
    SET p_taken = TRUE;
  END IF;
END
//
-- Whether one more of this kind may hold the lock now. If its leases have ended, the guard is locked: a transaction that
-- has asserted its fence keeps everybody out until it ends.
CREATE PROCEDURE lock_runtime_may_enter(IN p_name VARBINARY(1155), IN p_kind VARBINARY(24), OUT p_may BOOL)
SQL SECURITY DEFINER
BEGIN
  DECLARE t BIGINT DEFAULT {clock};
  DECLARE v_kind VARBINARY(12);
  DECLARE v_low, v_expires BIGINT;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET p_may = FALSE;
  SELECT kind, low, expires INTO v_kind, v_low, v_expires FROM lock_runtime_lock WHERE name = p_name;
  IF v_expires <= t THEN
    CALL lock_runtime_take_guard(p_name, p_may);
    -- Also for a clock that goes back before the next statement.
    IF p_may THEN UPDATE lock_runtime_lock SET expires = 0 WHERE name = p_name; END IF;
  ELSEIF p_kind = 'x' OR SUBSTRING_INDEX(p_kind, '/', 1) <> v_kind THEN
    SET p_may = FALSE;
  ELSEIF p_kind = 'r' THEN
    SET p_may = TRUE;
  ELSE
    SELECT COALESCE(SUM(permits), 0) + {permits} <= CAST(SUBSTR(v_kind, 2) AS UNSIGNED) INTO p_may
      FROM lock_runtime_sharer WHERE name = p_name AND fence >= v_low AND expires > t;
  END IF;
END
//
-- Makes one more the holder, with the next fence, for ttl ms. The session is that of a waiter that has to confirm it.
CREATE PROCEDURE lock_runtime_enter(
  IN p_name VARBINARY(1155), IN p_kind VARBINARY(24), IN p_token BINARY(16), IN p_who BLOB, IN p_ttl INT,
  IN p_session BINARY(16), OUT p_fence BIGINT
)
SQL SECURITY DEFINER
BEGIN
  DECLARE t BIGINT DEFAULT {clock};
  DECLARE v_kind VARBINARY(12);
  DECLARE v_low, v_expires BIGINT;
  SELECT kind, low, expires, GREATEST(fence + 1, t) INTO v_kind, v_low, v_expires, p_fence
    FROM lock_runtime_lock WHERE name = p_name;
  IF v_expires <= t THEN
    IF v_kind <> 'x' THEN
      DELETE FROM lock_runtime_sharer WHERE name = p_name AND fence >= v_low;
      -- Those that are left are smaller than the low of the guard, and are deleted with later ones.
      DELETE FROM lock_runtime_entered WHERE name = p_name ORDER BY fence LIMIT 1000;
    END IF;
    SET v_low = p_fence, v_expires = 0;
    UPDATE lock_runtime_guard SET low = p_fence, alone = p_kind = 'x' WHERE name = p_name;
  END IF;
  IF p_kind = 'x' THEN
    UPDATE lock_runtime_lock SET fence = p_fence, low = v_low, kind = 'x', token = p_token, who = p_who,
      session = p_session, since = t, expires = t + p_ttl * 1000 WHERE name = p_name;
  ELSE
    UPDATE lock_runtime_lock SET fence = p_fence, low = v_low, kind = SUBSTRING_INDEX(p_kind, '/', 1), token = NULL, who = NULL,
      session = NULL, since = t, expires = GREATEST(v_expires, t + p_ttl * 1000) WHERE name = p_name;
    INSERT INTO lock_runtime_sharer (name, fence, token, who, session, since, expires, permits)
      VALUES (p_name, p_fence, p_token, p_who, p_session, t, t + p_ttl * 1000, {permits});
    INSERT INTO lock_runtime_entered (name, fence) VALUES (p_name, p_fence);
  END IF;
END
//
-- Deletes the fences of sharers that have gone, while others go on. A transaction that has asserted its fence keeps it.
CREATE PROCEDURE lock_runtime_forget_entered(IN p_name VARBINARY(1155))
SQL SECURITY DEFINER
BEGIN
  DECLARE v_fences MEDIUMTEXT CHARACTER SET latin1;
  SELECT JSON_ARRAYAGG(fence) INTO v_fences FROM (
    -- Not a join: it would skip the rows of sharers that somebody has locked.
    SELECT e.fence FROM lock_runtime_entered e
      WHERE e.name = p_name AND NOT EXISTS (SELECT 1 FROM lock_runtime_sharer s WHERE s.name = e.name AND s.fence = e.fence)
      ORDER BY e.fence LIMIT 500 FOR UPDATE SKIP LOCKED
  ) gone;
  IF v_fences IS NOT NULL THEN
    DELETE e FROM {fences} f STRAIGHT_JOIN lock_runtime_entered e FORCE INDEX (PRIMARY)
      ON e.name = p_name AND e.fence = f.fence;
  END IF;
END
//
-- Extends the lease of a token to ttl ms from now. The fence is null if it has no lease.
CREATE PROCEDURE lock_runtime_extend(IN p_name VARBINARY(1155), IN p_token BINARY(16), IN p_ttl INT, OUT p_fence BIGINT)
SQL SECURITY DEFINER
BEGIN
  DECLARE t BIGINT DEFAULT {clock};
  DECLARE v_kind VARBINARY(12);
  DECLARE v_token BINARY(16);
  DECLARE v_fence, v_low, v_expires BIGINT;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_fence = NULL;
  SELECT kind, token, fence, low, expires INTO v_kind, v_token, v_fence, v_low, v_expires
    FROM lock_runtime_lock WHERE name = p_name;
  SET p_fence = NULL;
  IF v_kind = 'x' AND v_expires > t AND v_token = p_token THEN
    UPDATE lock_runtime_lock SET session = NULL, expires = t + p_ttl * 1000 WHERE name = p_name;
    SET p_fence = v_fence;
  ELSEIF v_kind <> 'x' AND v_expires > t THEN
    SELECT fence INTO v_fence FROM lock_runtime_sharer
      WHERE name = p_name AND fence >= v_low AND token = p_token AND expires > t;
    IF v_fence IS NOT NULL THEN
      UPDATE lock_runtime_sharer SET session = NULL, expires = t + p_ttl * 1000 WHERE name = p_name AND fence = v_fence;
      UPDATE lock_runtime_lock SET expires = GREATEST(expires, t + p_ttl * 1000) WHERE name = p_name;
      SET p_fence = v_fence;
    END IF;
  END IF;
END
//

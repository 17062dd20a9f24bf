-- assert_fence(key, fence, prefix): for transactions of yours. Fails with SQLSTATE LR001 if the lock was granted to another
-- holder since this fencing token, and lets no other holder begin until the transaction has ended, however late that is. The
-- prefix is that of the manager, and 'lock' unless it is set.
--
--   START TRANSACTION;
--   CALL lock_runtime_assert_fence('acct:1', 1795370634480661, 'lock');
--   UPDATE account SET …;
--   COMMIT;
--
-- Nothing is read that renewals change: a serializable transaction would lock whatever it reads, and they would wait.
CREATE PROCEDURE lock_runtime_assert_fence(IN p_key BLOB, IN p_fence BIGINT, IN p_prefix BLOB)
SQL SECURITY DEFINER
BEGIN
  DECLARE v_name VARBINARY(1155) DEFAULT CONCAT(p_prefix, ':{', p_key, '}');
  DECLARE v_low BIGINT;
  DECLARE v_alone BOOL;
  DECLARE v_entered BOOL DEFAULT FALSE;
  DECLARE v_key VARCHAR(50) CHARACTER SET utf8mb4;
  DECLARE v_message VARCHAR(128) CHARACTER SET utf8mb4;
  DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN END;
  {only a primary}
  -- Without a row there is nothing to lock but a gap, which would keep others from making theirs.
  SELECT low INTO v_low FROM lock_runtime_guard WHERE name = v_name;
  -- It only grows. Where the snapshot shows that a token is too small, nothing is locked: the transaction may go on for long.
  IF v_low <= p_fence THEN
    -- As the row is now, whatever the snapshot of the transaction shows. Somebody may have deleted it.
    SET v_low = NULL;
    SELECT low, alone INTO v_low, v_alone FROM lock_runtime_guard WHERE name = v_name LOCK IN SHARE MODE;
  END IF;
  IF v_low <= p_fence AND NOT v_alone THEN
    SELECT TRUE INTO v_entered FROM lock_runtime_entered WHERE name = v_name AND fence = p_fence LOCK IN SHARE MODE;
    IF NOT v_entered THEN SET v_low = NULL; END IF;
  END IF;
  -- Null without a row, and for a token that is null.
  IF COALESCE(v_low > p_fence OR v_alone AND v_low < p_fence, TRUE) THEN
    BEGIN
      -- For a key that is not UTF-8, MariaDB fails, and MySQL returns null.
      DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET v_key = NULL;
      SET v_key = LEFT(CONVERT(p_key USING utf8mb4), 50);
    END;
    SET v_message = CONCAT('the lock "', COALESCE(v_key, LEFT(HEX(p_key), 50), ''), '" is not held with the fencing token ',
      COALESCE(p_fence, 'NULL'));
    SIGNAL SQLSTATE 'LR001' SET MESSAGE_TEXT = v_message;
  END IF;
END
//

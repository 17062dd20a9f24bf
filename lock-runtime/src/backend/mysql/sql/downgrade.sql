-- downgrade(name, token, session, longest) → whether the lock is ours: lets a writer go on as a reader for what is left of its
-- lease, under the same fence, and hands the lock to the readers that are next. Null while a transaction that has asserted the
-- fence of the writer is open: nobody may begin before it has ended.
--
-- longest  as in acquire: nothing is handed on in the quarantine
CREATE PROCEDURE lock_runtime_downgrade{noted}(
  IN p_name VARBINARY(1155), IN p_token BINARY(16), IN p_session BINARY(16), IN p_longest BIGINT{keep}
)
SQL SECURITY DEFINER
BEGIN
  DECLARE v_found BOOL;
  DECLARE v_ours BOOL DEFAULT FALSE;
  DECLARE v_kind VARBINARY(12);
  DECLARE v_token BINARY(16);
  DECLARE v_low, v_expires, v_left, t BIGINT;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_found = FALSE;
  {begin}
  CALL lock_runtime_take(p_name, FALSE, v_found);
  SET t = {clock};
  SELECT kind, token, low, expires INTO v_kind, v_token, v_low, v_expires FROM lock_runtime_lock WHERE name = p_name;
  IF v_kind = 'x' AND v_token = p_token AND v_expires > t THEN
    CALL lock_runtime_take_guard(p_name, v_found);
    IF NOT v_found THEN
      SET v_ours = NULL;
    ELSE
      INSERT INTO lock_runtime_sharer (name, fence, token, who, since, expires)
        SELECT name, fence, token, who, since, expires FROM lock_runtime_lock WHERE name = p_name;
      INSERT INTO lock_runtime_entered (name, fence) SELECT name, fence FROM lock_runtime_lock WHERE name = p_name;
      UPDATE lock_runtime_guard SET alone = FALSE WHERE name = p_name;
      UPDATE lock_runtime_lock SET kind = 'r', low = fence, token = NULL, who = NULL, session = NULL WHERE name = p_name;
      CALL lock_runtime_quarantine_left(p_longest, v_left);
      IF v_left = 0 THEN CALL lock_runtime_serve(p_name, p_session); END IF;
      SET v_ours = TRUE;
    END IF;
  ELSEIF v_kind = 'r' THEN
    -- An earlier call, whose answer was lost, may have done it.
    SELECT TRUE INTO v_ours FROM lock_runtime_sharer
      WHERE name = p_name AND fence >= v_low AND token = p_token AND expires > t;
  END IF;
  {note holders}
  COMMIT;
  {only a primary}
  SELECT v_ours;
END
//

-- sweep(after, most) → the last of the next so many names behind that one, or null at the end: deletes the rows among them of
-- locks that were neither held nor changed for an hour. A row that somebody else uses is left alone. An hour is more than a
-- clock may go back, so that fences grow over the deletion. Histories are forgotten after 32 days.
CREATE PROCEDURE lock_runtime_sweep(IN p_after VARBINARY(1152), IN p_most INT)
SQL SECURITY DEFINER
BEGIN
  DECLARE v_idle BIGINT DEFAULT {clock} - 3600000000;
  DECLARE v_forgotten BIGINT DEFAULT {clock} - 2764800000000;
  DECLARE v_next, v_name VARBINARY(1152);
  DECLARE v_guard, v_done BOOL DEFAULT FALSE;
  DECLARE idle CURSOR FOR SELECT name FROM lock_runtime_lock
    WHERE name > p_after AND (v_next IS NULL OR name <= v_next) AND GREATEST(expires, since) < v_idle;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_done = TRUE;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  SET p_most = p_most - 1;
  SELECT name INTO v_next FROM lock_runtime_lock WHERE name > p_after ORDER BY name LIMIT p_most, 1;
  SET v_done = FALSE;
  OPEN idle;
  sweep: LOOP
    FETCH idle INTO v_name;
    IF v_done THEN LEAVE sweep; END IF;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    START TRANSACTION;
    SET v_guard = FALSE;
    SELECT TRUE INTO v_guard FROM lock_runtime_lock
      WHERE name = v_name AND GREATEST(expires, since) < v_idle FOR UPDATE SKIP LOCKED;
    IF v_guard THEN
      CALL lock_runtime_take_guard(v_name, v_guard);
    END IF;
    IF v_guard THEN
      DELETE FROM lock_runtime_sharer WHERE name = v_name;
      DELETE FROM lock_runtime_waiter WHERE name = v_name;
      DELETE FROM lock_runtime_guard WHERE name = v_name;
      DELETE FROM lock_runtime_lock WHERE name = v_name;
    END IF;
    COMMIT;
    SET v_done = FALSE;
  END LOOP;
  CLOSE idle;
  DELETE h FROM lock_runtime_history h JOIN (
    SELECT g.name, g.fence FROM lock_runtime_history g WHERE g.since < v_forgotten AND NOT EXISTS
      (SELECT 1 FROM lock_runtime_history n WHERE n.name = g.name AND n.since >= v_forgotten) ORDER BY g.since LIMIT p_most
  ) o ON h.name = o.name AND h.fence = o.fence;
  SELECT v_next;
END
//

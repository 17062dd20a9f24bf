-- release(name, token, rest, leave, session, longest) → whether the lock was ours: lets go of it and hands it on.
--
-- rest     for how many ms it stays closed; 0 for none. Nobody is its holder meanwhile, so that neither a late renewal nor
--          a second release finds it
-- leave    whether the token leaves the queue first; a grant that raced is passed on
-- longest  as in acquire: nothing is handed on in the quarantine

-- All of release but the transaction.
CREATE PROCEDURE lock_runtime_release_in(
  IN p_name VARBINARY(1155), IN p_token BINARY(16), IN p_rest INT, IN p_leave BOOL, IN p_session BINARY(16),
  IN p_longest BIGINT, OUT p_ours BOOL
)
SQL SECURITY DEFINER
BEGIN
  DECLARE v_found BOOL DEFAULT TRUE;
  DECLARE v_kind VARBINARY(12);
  DECLARE v_token BINARY(16);
  DECLARE v_low, v_expires, t BIGINT;
  DECLARE v_left BIGINT DEFAULT 0;
  DECLARE v_waiters INT;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_found = FALSE;
  {only a primary}
  SELECT kind, token, low, expires, waiters INTO v_kind, v_token, v_low, v_expires, v_waiters
    FROM lock_runtime_lock WHERE name = p_name FOR UPDATE;
  SET p_ours = FALSE;
  IF v_found THEN
    IF p_leave THEN
      DELETE FROM lock_runtime_waiter WHERE token = p_token AND name = p_name;
      UPDATE lock_runtime_lock SET waiters = waiters - ROW_COUNT() WHERE name = p_name;
    END IF;
    SET t = {clock};
    IF v_kind <> 'x' THEN
      UPDATE lock_runtime_sharer SET who = CONCAT('-', CONCAT_WS(' ', LOWER(HEX(token)), NULLIF(who, ''))), token = NULL,
          session = NULL, expires = IF(p_rest > 0, t + p_rest * 1000, 0)
        WHERE name = p_name AND fence >= v_low AND token = p_token AND expires > t;
      SET p_ours = ROW_COUNT() > 0;
      IF p_ours THEN CALL lock_runtime_settle(p_name); END IF;
    ELSEIF v_token = p_token THEN
      SET p_ours = v_expires > t;
      UPDATE lock_runtime_lock SET who = CONCAT('-', CONCAT_WS(' ', LOWER(HEX(token)), NULLIF(who, ''))), token = NULL,
        session = NULL, since = t, expires = IF(p_ours AND p_rest > 0, t + p_rest * 1000, 0) WHERE name = p_name;
    END IF;
    IF v_waiters > 0 AND p_longest > 0 THEN CALL lock_runtime_quarantine_left(p_longest, v_left); END IF;
    IF v_waiters > 0 AND v_left = 0 THEN CALL lock_runtime_serve(p_name, p_session); END IF;
  END IF;
END
//
CREATE PROCEDURE lock_runtime_release{noted}(
  IN p_name VARBINARY(1155), IN p_token BINARY(16), IN p_rest INT, IN p_leave BOOL, IN p_session BINARY(16),
  IN p_longest BIGINT{keep}
)
SQL SECURITY DEFINER
BEGIN
  DECLARE v_found, v_ours BOOL;
  DECLARE t BIGINT;
  {begin}
  {note moment}
  CALL lock_runtime_release_in(p_name, p_token, p_rest, p_leave, p_session, p_longest, v_ours);
  {note release}
  {note holders}
  COMMIT;
  SELECT v_ours;
END
//

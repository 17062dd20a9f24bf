-- ask(name, tokens, ttls, session, longest) → where do these tokens of one session stand? A token that holds the lock is
-- extended to its ttl. Serves the queue where a lease has ended. Never joins: a token that is queued again after a late grant
-- would make two holders.
--
-- tokens, ttls  one behind the other, in 16 and 4 bytes
-- longest       as in acquire. In the quarantine there are no fences in the answer, and left is what is left of that
--
-- The answer has left, holder, others and longest as a reply has; which of the tokens is the first of the queue, from 1, or 0;
-- and for each token its fence if it is granted, 0 if it waits, -1 if it is gone.
CREATE PROCEDURE lock_runtime_ask(
  IN p_name VARBINARY(1152), IN p_tokens BLOB, IN p_ttls BLOB, IN p_session BINARY(16), IN p_longest BIGINT
)
SQL SECURITY DEFINER
BEGIN
  DECLARE i, v_count, v_first, v_others INT DEFAULT 0;
  DECLARE v_left, v_fence, v_head, v_longest, v_expires BIGINT;
  DECLARE v_kind VARBINARY(12);
  DECLARE v_token BINARY(16);
  DECLARE v_holder BLOB;
  DECLARE v_found, v_waits, v_locks BOOL DEFAULT FALSE;
  DECLARE v_fences TEXT CHARACTER SET latin1 DEFAULT '';
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_found = FALSE;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION;
  CALL lock_runtime_quarantine_left(p_longest, v_left);
  IF v_left > 0 THEN
    SELECT v_left, NULL, NULL, NULL, NULL, NULL;
  ELSE
    SET v_count = LENGTH(p_tokens) DIV 16, v_found = TRUE;
    SELECT kind, expires INTO v_kind, v_expires FROM lock_runtime_lock WHERE name = p_name;
    SET v_locks = NOT v_found OR v_kind <> 'x' OR v_expires <= {clock};
    WHILE i < v_count AND NOT v_locks DO
      SET v_waits = FALSE;
      SELECT TRUE INTO v_waits FROM lock_runtime_waiter WHERE token = SUBSTR(p_tokens, 16 * i + 1, 16);
      SET v_locks = NOT v_waits, i = i + 1;
    END WHILE;
    -- Whoever waits behind a lease needs no lock of the row.
    IF v_locks THEN
      CALL lock_runtime_take(p_name, FALSE, v_found);
      IF NOT v_found THEN
        SELECT TRUE INTO v_waits FROM lock_runtime_waiter WHERE name = p_name LIMIT 1;
        IF v_waits THEN CALL lock_runtime_take(p_name, TRUE, v_found); END IF;
      END IF;
      IF v_found THEN CALL lock_runtime_serve(p_name, p_session); END IF;
    END IF;
    SET i = 0;
    WHILE i < v_count DO
      SET v_token = SUBSTR(p_tokens, 16 * i + 1, 16), v_fence = NULL, v_waits = NOT v_locks;
      IF v_locks THEN
        SELECT TRUE INTO v_waits FROM lock_runtime_waiter WHERE token = v_token;
        IF NOT v_waits THEN
          CALL lock_runtime_extend(p_name, v_token, CONV(HEX(SUBSTR(p_ttls, 4 * i + 1, 4)), 16, 10), v_fence);
        END IF;
      END IF;
      SET v_fences = CONCAT(v_fences, IF(v_fences = '', '', ','), COALESCE(v_fence, IF(v_waits, 0, -1))), i = i + 1;
    END WHILE;
    CALL lock_runtime_describe(p_name, 1, v_left, v_holder, v_others, v_longest);
    SELECT head INTO v_head FROM lock_runtime_lock WHERE name = p_name;
    SET v_token = NULL;
    SELECT token INTO v_token FROM lock_runtime_waiter
      WHERE name = p_name AND place > COALESCE(v_head, 0) ORDER BY name, place, token LIMIT 1;
    SET i = 0;
    WHILE i < v_count AND v_first = 0 DO
      IF SUBSTR(p_tokens, 16 * i + 1, 16) = v_token THEN SET v_first = i + 1; END IF;
      SET i = i + 1;
    END WHILE;
    SELECT v_left, v_holder, v_others, v_longest, v_first, CONCAT('{', v_fences, '}');
  END IF;
  COMMIT;
END
//

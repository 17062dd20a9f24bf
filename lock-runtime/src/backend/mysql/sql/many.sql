-- many(calls, session, longest) → for each call its reply, with its number: up to 64 calls about exclusive locks in one
-- transaction, so that the cost of a commit is paid once. Sorted by name, as in renew; calls of one name keep their order.
--
-- calls  one behind the other: 2 bytes for the number of the call, 1 for what it does (x acquires and waits, - releases), 2 for
--        the length of the name, the name, 16 for the token, 4 for the ttl in ms, 2 for the length of who, who
CREATE PROCEDURE lock_runtime_many(IN p_calls MEDIUMBLOB, IN p_session BINARY(16), IN p_longest BIGINT)
SQL SECURITY DEFINER
BEGIN
  DECLARE v_at INT DEFAULT 1;
  DECLARE v_number, v_length, v_ttl INT;
  DECLARE v_action BINARY(1);
  DECLARE v_name VARBINARY(1152);
  DECLARE v_token BINARY(16);
  DECLARE v_who BLOB;
  DECLARE v_ours BOOL;
  DECLARE v_left BIGINT;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION;
  CALL lock_runtime_quarantine_left(p_longest, v_left);
  WHILE v_at < LENGTH(p_calls) DO
    SET v_number = CONV(HEX(SUBSTR(p_calls, v_at, 2)), 16, 10), v_action = SUBSTR(p_calls, v_at + 2, 1);
    SET v_length = CONV(HEX(SUBSTR(p_calls, v_at + 3, 2)), 16, 10);
    SET v_name = SUBSTR(p_calls, v_at + 5, v_length), v_at = v_at + 5 + v_length;
    SET v_token = SUBSTR(p_calls, v_at, 16), v_ttl = CONV(HEX(SUBSTR(p_calls, v_at + 16, 4)), 16, 10);
    SET v_length = CONV(HEX(SUBSTR(p_calls, v_at + 20, 2)), 16, 10);
    SET v_who = SUBSTR(p_calls, v_at + 22, v_length), v_at = v_at + 22 + v_length;
    IF v_action = '-' THEN
      CALL lock_runtime_release_in(v_name, v_token, 0, FALSE, p_session, p_longest, v_ours);
      SELECT IF(v_ours, 'ours', 'not ours'), NULL, NULL, NULL, NULL, NULL, NULL, NULL, v_number;
    ELSEIF v_left > 0 THEN
      SELECT 'quarantined', NULL, NULL, v_left, NULL, NULL, NULL, NULL, v_number;
    ELSE
      CALL lock_runtime_acquire_in(v_name, v_token, v_who, 'x', v_ttl, p_session, TRUE, NULL, NULL, v_number);
    END IF;
  END WHILE;
  COMMIT;
END
//

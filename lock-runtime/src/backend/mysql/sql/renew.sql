-- renew(calls) → for each call whether the lease was ours and is extended to its ttl, as {t,f}. Also confirms a lock that was
-- handed over. Up to 100 at once, sorted by name, so that two such calls do not wait for each other in a circle.
--
-- calls    one behind the other: 2 bytes for the length of the name, the name, 16 for the token, 4 for the ttl in ms

CREATE PROCEDURE lock_runtime_renew(IN p_calls MEDIUMBLOB)
SQL SECURITY DEFINER
BEGIN
  DECLARE v_at, v_length INT DEFAULT 1;
  DECLARE v_name VARBINARY(1155);
  DECLARE v_token BINARY(16);
  DECLARE v_fence BIGINT;
  DECLARE v_found BOOL;
  DECLARE v_ours TEXT CHARACTER SET latin1 DEFAULT '';
  {begin}
  WHILE v_at < LENGTH(p_calls) DO
    SET v_length = CONV(HEX(SUBSTR(p_calls, v_at, 2)), 16, 10);
    SET v_name = SUBSTR(p_calls, v_at + 2, v_length), v_at = v_at + 2 + v_length;
    SET v_token = SUBSTR(p_calls, v_at, 16), v_fence = NULL;
    CALL lock_runtime_take(v_name, FALSE, v_found);
    IF v_found THEN
      CALL lock_runtime_extend(v_name, v_token, CONV(HEX(SUBSTR(p_calls, v_at + 16, 4)), 16, 10), v_fence);
    END IF;
    SET v_ours = CONCAT(v_ours, IF(v_ours = '', '', ','), IF(v_fence IS NULL, 'f', 't')), v_at = v_at + 20;
  END WHILE;
  COMMIT;
  {only a primary}
  SELECT CONCAT('{', v_ours, '}');
END
//

-- issue(name, token, ticket, time) → whether the lock was ours: a ticket of this name keeps it closed for so many ms. Nobody is
-- its holder meanwhile, so that neither a late renewal nor a release finds it.
CREATE PROCEDURE lock_runtime_issue{noted}(
  IN p_name VARBINARY(1155), IN p_token BINARY(16), IN p_ticket BLOB, IN p_time BIGINT{keep}
)
SQL SECURITY DEFINER
BEGIN
  DECLARE v_found, v_ours BOOL DEFAULT FALSE;
  DECLARE v_kind VARBINARY(12);
  DECLARE v_token BINARY(16);
  DECLARE v_who BLOB;
  DECLARE v_low, v_expires, t BIGINT;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_found = FALSE;
  {begin}
  CALL lock_runtime_take(p_name, FALSE, v_found);
  SET t = {clock};
  SELECT kind, token, who, low, expires INTO v_kind, v_token, v_who, v_low, v_expires
    FROM lock_runtime_lock WHERE name = p_name;
  IF v_kind = 'x' AND v_expires > t THEN
    IF v_token = p_token THEN
      UPDATE lock_runtime_lock SET token = NULL, who = p_ticket, session = NULL, since = t, expires = t + p_time * 1000
        WHERE name = p_name;
      SET v_ours = TRUE;
    ELSE
      -- An earlier call, whose answer was lost, may have written it.
      SET v_ours = COALESCE(v_token IS NULL AND v_who = p_ticket, FALSE);
    END IF;
  ELSEIF v_kind <> 'x' THEN
    UPDATE lock_runtime_sharer SET token = NULL, who = p_ticket, session = NULL, since = t, expires = t + p_time * 1000
      WHERE name = p_name AND fence >= v_low AND token = p_token AND expires > t;
    SET v_ours = ROW_COUNT() > 0;
    IF v_ours THEN
      CALL lock_runtime_settle(p_name);
    ELSE
      SELECT TRUE INTO v_ours FROM lock_runtime_sharer
        WHERE name = p_name AND fence >= v_low AND who = p_ticket AND expires > t LIMIT 1;
    END IF;
  END IF;
  {note release}
  COMMIT;
  {only a primary}
  SELECT v_ours;
END
//
-- adopt(name, token, who, kind, ttl, ticket, longest) → reply: takes over a lock that a ticket keeps closed, whoever waits for
-- it. A token that has adopted it already is extended instead of finding the ticket gone. While a transaction that has asserted
-- the fence of the former holder is open, the lock is busy.
--
-- ticket   what the name of the ticket begins with
-- longest  as in acquire
CREATE PROCEDURE lock_runtime_adopt{noted}(
  IN p_name VARBINARY(1155), IN p_token BINARY(16), IN p_who BLOB, IN p_kind VARBINARY(24), IN p_ttl INT,
  IN p_ticket VARBINARY(200), IN p_longest BIGINT{keep}
)
SQL SECURITY DEFINER
BEGIN
  DECLARE v_found, v_issued, v_free BOOL DEFAULT FALSE;
  DECLARE v_kind VARBINARY(12);
  DECLARE v_token BINARY(16);
  DECLARE v_who, v_holder BLOB;
  DECLARE v_low, v_expires, v_fence, v_left, v_longest, t BIGINT;
  DECLARE v_others INT;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_found = FALSE;
  {begin}
  CALL lock_runtime_quarantine_left(p_longest, v_left);
  IF v_left = 0 THEN
    CALL lock_runtime_take(p_name, FALSE, v_found);
    IF v_found THEN
      CALL lock_runtime_extend(p_name, p_token, p_ttl, v_fence);
      SET t = {clock};
      SELECT kind, token, who, low, expires INTO v_kind, v_token, v_who, v_low, v_expires
        FROM lock_runtime_lock WHERE name = p_name;
      IF v_fence IS NULL AND v_kind = p_kind AND v_expires > t THEN
        IF v_kind = 'x' THEN
          SET v_issued = v_token IS NULL AND LEFT(v_who, LENGTH(p_ticket)) = p_ticket;
        ELSE
          SELECT TRUE INTO v_issued FROM lock_runtime_sharer
            WHERE name = p_name AND fence >= v_low AND token IS NULL AND LEFT(who, LENGTH(p_ticket)) = p_ticket
              AND expires > t LIMIT 1;
        END IF;
      END IF;
    END IF;
  END IF;
  IF v_issued THEN
    CALL lock_runtime_take_guard(p_name, v_free);
  END IF;
  IF v_left > 0 THEN
    SELECT 'quarantined', NULL, NULL, v_left, NULL, NULL, NULL, NULL, NULL;
  ELSEIF v_issued AND NOT v_free THEN
    CALL lock_runtime_describe(p_name, 0, v_left, v_holder, v_others, v_longest);
    SELECT 'busy', NULL, NULL, v_left, v_holder, v_others, v_longest, NULL, NULL;
  ELSE
    IF v_issued THEN
      IF v_kind = 'x' THEN
        -- Nobody else has the lock, so that the fences before this one are of the past.
        UPDATE lock_runtime_lock SET expires = 0 WHERE name = p_name;
      ELSE
        DELETE FROM lock_runtime_sharer
          WHERE name = p_name AND fence >= v_low AND token IS NULL AND LEFT(who, LENGTH(p_ticket)) = p_ticket;
      END IF;
      CALL lock_runtime_enter(p_name, p_kind, p_token, p_who, p_ttl, NULL, v_fence);
      CALL lock_runtime_settle(p_name);
    END IF;
    SELECT IF(v_fence IS NULL, 'no ticket', 'granted'), v_fence, NULL, NULL, NULL, NULL, NULL, NULL, NULL;
  END IF;
  {note holders}
  COMMIT;
  {only a primary}
END
//

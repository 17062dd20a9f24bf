-- force(name, session, longest) → how many held the lock, those included that cool down: takes it from all of them and hands it
-- on. The holders find that within two seconds, or with a renewal. Goes on with the history of the lock, if it has
-- one.
CREATE PROCEDURE lock_runtime_force(IN p_name VARBINARY(1155), IN p_session BINARY(16), IN p_longest BIGINT)
SQL SECURITY DEFINER
BEGIN
  DECLARE v_found BOOL;
  DECLARE v_kind VARBINARY(12);
  DECLARE v_low, v_expires, v_left, t BIGINT;
  DECLARE v_held INT DEFAULT 0;
  DECLARE v_remembered BOOL DEFAULT FALSE;
  {begin}
  CALL lock_runtime_take(p_name, FALSE, v_found);
  IF v_found THEN
    SET t = {clock};
    SELECT kind, low, expires INTO v_kind, v_low, v_expires FROM lock_runtime_lock WHERE name = p_name;
    SET v_remembered = EXISTS (SELECT 1 FROM lock_runtime_history WHERE name = p_name);
    IF v_remembered THEN
      UPDATE lock_runtime_history h SET h.ended = t, h.how = 'revoked' WHERE h.name = p_name AND h.ended IS NULL AND (
        EXISTS (SELECT 1 FROM lock_runtime_lock l
          WHERE l.name = h.name AND l.kind = 'x' AND l.token = h.token AND l.expires > t)
        OR v_kind <> 'x' AND EXISTS (SELECT 1 FROM lock_runtime_sharer s
          WHERE s.name = h.name AND s.fence >= v_low AND s.token = h.token AND s.expires > t));
    END IF;
    IF v_kind = 'x' THEN
      SET v_held = v_expires > t;
    ELSE
      SELECT COUNT(*) INTO v_held FROM lock_runtime_sharer WHERE name = p_name AND fence >= v_low AND expires > t;
      DELETE FROM lock_runtime_sharer WHERE name = p_name AND fence >= v_low;
    END IF;
    IF v_held > 0 THEN
      UPDATE lock_runtime_lock SET token = NULL, session = NULL, since = t, expires = 0 WHERE name = p_name;
      CALL lock_runtime_quarantine_left(p_longest, v_left);
      IF v_left = 0 THEN CALL lock_runtime_serve(p_name, p_session); END IF;
      IF v_remembered THEN CALL lock_runtime_note_holders(p_name, NULL); END IF;
    END IF;
  END IF;
  COMMIT;
  SELECT v_held;
END
//
-- ask_to_yield(name) → how many hold the lock: notes that somebody would like to have it, which they find within two seconds.
CREATE PROCEDURE lock_runtime_ask_to_yield(IN p_name VARBINARY(1155))
SQL SECURITY DEFINER
BEGIN
  DECLARE t BIGINT DEFAULT {clock};
  DECLARE v_count INT;
  -- Holders ask another server, and a row of its own would stop the replication of a replica.
  {only a primary}
  DELETE FROM lock_runtime_asked WHERE since < t - 86400000000;
  SELECT COUNT(*) INTO v_count FROM (
    SELECT token FROM lock_runtime_lock WHERE name = p_name AND kind = 'x' AND expires > t AND token IS NOT NULL
    UNION ALL
    SELECT s.token FROM lock_runtime_sharer s JOIN lock_runtime_lock l ON l.name = s.name
      WHERE s.name = p_name AND l.kind <> 'x' AND s.fence >= l.low AND s.expires > t AND s.token IS NOT NULL
  ) h;
  INSERT INTO lock_runtime_asked (token, since)
    SELECT token, t FROM lock_runtime_lock WHERE name = p_name AND kind = 'x' AND expires > t AND token IS NOT NULL
    ON DUPLICATE KEY UPDATE since = t;
  INSERT INTO lock_runtime_asked (token, since)
    SELECT s.token, t FROM lock_runtime_sharer s JOIN lock_runtime_lock l ON l.name = s.name
      WHERE s.name = p_name AND l.kind <> 'x' AND s.fence >= l.low AND s.expires > t AND s.token IS NOT NULL
    ON DUPLICATE KEY UPDATE since = t;
  SELECT v_count;
END
//
-- standing(calls) → for each call 0 if its token does not hold its lock any more, if nothing but time has passed; 2 if it does
-- and was asked to yield; else 1. Up to 100 calls at once, of the form of renew.
CREATE PROCEDURE lock_runtime_standing(IN p_calls MEDIUMBLOB)
SQL SECURITY DEFINER
BEGIN
  DECLARE v_at, v_length INT DEFAULT 1;
  DECLARE v_name VARBINARY(1155);
  DECLARE v_token BINARY(16);
  DECLARE v_standings TEXT CHARACTER SET latin1 DEFAULT '';
  WHILE v_at < LENGTH(p_calls) DO
    SET v_length = CONV(HEX(SUBSTR(p_calls, v_at, 2)), 16, 10);
    SET v_name = SUBSTR(p_calls, v_at + 2, v_length), v_at = v_at + 2 + v_length;
    SET v_token = SUBSTR(p_calls, v_at, 16), v_at = v_at + 20;
    -- Not by SET, which would wait for rows that somebody keeps.
    SELECT CONCAT(v_standings, IF(v_standings = '', '', ','), CASE
      WHEN NOT EXISTS (SELECT 1 FROM lock_runtime_lock WHERE name = v_name AND token = v_token)
        -- Rows of sharers outlive a row of the lock that somebody has deleted.
        AND NOT EXISTS (SELECT 1 FROM lock_runtime_sharer s JOIN lock_runtime_lock l ON l.name = s.name
          WHERE s.name = v_name AND s.token = v_token AND l.kind <> 'x' AND s.fence >= l.low) THEN 0
      WHEN EXISTS (SELECT 1 FROM lock_runtime_asked WHERE token = v_token) THEN 2
      ELSE 1 END) INTO v_standings;
  END WHILE;
  SELECT CONCAT('{', v_standings, '}');
END
//

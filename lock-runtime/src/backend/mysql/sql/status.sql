-- status(name, session) → the holders and the waiters of the lock:
--
-- part     kind, who                  number         age in us        left in ms
-- queue                               of waiters
-- holder   as the lock is held, name  fence          since its grant  of its lease
-- waiter   as it wants it, name       place          since it joined
--
-- The waiters are those among the first 1000 whose session is not gone; those that are gone do not count.
CREATE PROCEDURE lock_runtime_status(IN p_name VARBINARY(1155), IN p_session BINARY(16))
SQL SECURITY DEFINER
BEGIN
  DECLARE t BIGINT DEFAULT {clock};
  DECLARE v_kind VARBINARY(12);
  DECLARE v_head, v_low BIGINT;
  DECLARE v_waiters, v_gone INT DEFAULT 0;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_waiters = 0;
  {only a primary}
  SELECT kind, head, low, waiters INTO v_kind, v_head, v_low, v_waiters FROM lock_runtime_lock WHERE name = p_name;
  IF v_waiters > 0 THEN
    SELECT COUNT(*) INTO v_gone FROM lock_runtime_waiter
      WHERE name = p_name AND place > v_head AND {gone};
  END IF;
  SELECT 'queue', NULL, NULL, v_waiters - v_gone, NULL, NULL;
  IF v_kind = 'x' THEN
    SELECT 'holder', kind, CONCAT_WS(' ', LOWER(HEX(token)), NULLIF(who, '')), fence, GREATEST(0, t - since),
      CEIL((expires - t) / 1000) FROM lock_runtime_lock WHERE name = p_name AND expires > t;
  ELSE
    SELECT 'holder', IF(permits > 1, CONCAT(v_kind, '/', permits), v_kind),
      CONCAT_WS(' ', LOWER(HEX(token)), NULLIF(who, '')), fence, GREATEST(0, t - since), CEIL((expires - t) / 1000)
      FROM lock_runtime_sharer WHERE name = p_name AND fence >= v_low AND expires > t ORDER BY fence;
  END IF;
  SELECT 'waiter', kind, CONCAT_WS(' ', LOWER(HEX(token)), NULLIF(who, '')), place, GREATEST(0, t - place), NULL
    FROM lock_runtime_waiter WHERE name = p_name AND place > v_head
      AND NOT {gone}
    ORDER BY name, place, token LIMIT 1000;
END
//

-- The queue of a lock. Each procedure needs the row of the lock to be locked by this transaction.

-- Removes all waiters of a session, which is stopped or gone.
CREATE PROCEDURE lock_runtime_evict(IN p_name VARBINARY(1155), IN p_session BINARY(16))
SQL SECURITY DEFINER
BEGIN
  DELETE FROM lock_runtime_waiter WHERE name = p_name AND session = p_session;
  UPDATE lock_runtime_lock SET waiters = waiters - ROW_COUNT() WHERE name = p_name;
END
//
-- Forgets leases that have ended. A session that was handed the lock and let the lease end without confirming it is
-- stopped: none of its waiters would confirm either.
CREATE PROCEDURE lock_runtime_settle(IN p_name VARBINARY(1155))
SQL SECURITY DEFINER
BEGIN
  DECLARE t BIGINT DEFAULT {clock};
  DECLARE v_kind VARBINARY(12);
  DECLARE v_session BINARY(16);
  DECLARE v_fence, v_low, v_expires BIGINT;
  DECLARE v_more BOOL DEFAULT TRUE;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_more = FALSE;
  SELECT kind, session, fence, low, expires INTO v_kind, v_session, v_fence, v_low, v_expires
    FROM lock_runtime_lock WHERE name = p_name;
  IF v_kind = 'x' THEN
    IF v_expires <= t AND v_session IS NOT NULL THEN
      UPDATE lock_runtime_lock SET session = NULL WHERE name = p_name;
      CALL lock_runtime_evict(p_name, v_session);
    END IF;
  ELSE
    WHILE v_more DO
      SET v_session = NULL;
      SELECT session INTO v_session FROM lock_runtime_sharer
        WHERE name = p_name AND fence >= v_low AND expires <= t AND session IS NOT NULL LIMIT 1;
      IF v_session IS NOT NULL THEN
        UPDATE lock_runtime_sharer SET session = NULL WHERE name = p_name AND fence >= v_low AND session = v_session;
        CALL lock_runtime_evict(p_name, v_session);
      END IF;
      SET v_more = v_session IS NOT NULL;
    END WHILE;
    DELETE FROM lock_runtime_sharer WHERE name = p_name AND fence >= v_low AND expires <= t;
    SELECT COALESCE(MIN(fence), v_fence + 1), COALESCE(MAX(expires), 0) INTO v_low, v_expires
      FROM lock_runtime_sharer WHERE name = p_name AND fence >= v_low;
    UPDATE lock_runtime_lock SET low = v_low, expires = v_expires WHERE name = p_name;
    -- Now and then, so that most releases are as fast as without.
    IF t MOD 16 = 0 THEN CALL lock_runtime_forget_entered(p_name); END IF;
  END IF;
END
//
-- Hands the lock to the first waiters, as many as may hold it together. Their lease is their ttl, but at least 1 s, in which
-- each waiter asks, and at most 3 s. The question of a waiter confirms its lease and sets the real ttl. A waiter whose bell
-- nobody holds is gone, except of the calling session.
CREATE PROCEDURE lock_runtime_serve(IN p_name VARBINARY(1155), IN p_session BINARY(16))
SQL SECURITY DEFINER
serve: BEGIN
  DECLARE v_kind VARBINARY(12);
  DECLARE w_kind VARBINARY(24);
  DECLARE v_head, v_expires, w_place, v_fence, t BIGINT;
  DECLARE v_waiters, w_ttl INT;
  DECLARE v_session, w_token, w_session BINARY(16);
  DECLARE w_who BLOB;
  DECLARE v_may BOOL;
  DECLARE v_found BOOL DEFAULT TRUE;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_found = FALSE;
  SELECT kind, session, fence, head, expires, waiters INTO v_kind, v_session, v_fence, v_head, v_expires, v_waiters
    FROM lock_runtime_lock WHERE name = p_name;
  IF NOT v_found OR v_waiters = 0 OR v_kind = 'x' AND v_expires > {clock} THEN LEAVE serve; END IF;
  IF v_kind <> 'x' OR v_session IS NOT NULL THEN
    CALL lock_runtime_settle(p_name);
    SELECT head, waiters INTO v_head, v_waiters FROM lock_runtime_lock WHERE name = p_name;
  END IF;
  waiters: LOOP
    IF v_waiters = 0 THEN LEAVE waiters; END IF;
    SET v_found = TRUE, v_may = FALSE;
    SELECT place, token, who, kind, LEAST(GREATEST(ttl, 1000), 3000), session
      INTO w_place, w_token, w_who, w_kind, w_ttl, w_session
      FROM lock_runtime_waiter WHERE name = p_name AND place > v_head ORDER BY name, place, token LIMIT 1;
    IF NOT v_found THEN
      UPDATE lock_runtime_lock SET waiters = 0 WHERE name = p_name;
      LEAVE waiters;
    END IF;
    IF w_session <> p_session AND IS_USED_LOCK(CONCAT('lock_runtime:', HEX(w_session))) IS NULL THEN
      CALL lock_runtime_evict(p_name, w_session);
      SELECT waiters INTO v_waiters FROM lock_runtime_lock WHERE name = p_name;
      ITERATE waiters;
    END IF;
    -- From one holder to the next: as below, in as few statements as that needs.
    IF v_kind = 'x' AND w_kind = 'x' THEN
      SELECT TRUE INTO v_may FROM lock_runtime_guard WHERE name = p_name FOR UPDATE SKIP LOCKED;
    END IF;
    IF v_may THEN
      SET t = {clock}, v_fence = GREATEST(v_fence + 1, t);
      DELETE FROM lock_runtime_waiter WHERE name = p_name AND place = w_place AND token = w_token;
      UPDATE lock_runtime_guard SET low = v_fence, alone = TRUE WHERE name = p_name;
      UPDATE lock_runtime_lock SET waiters = waiters - 1, head = w_place - 1, fence = v_fence, low = v_fence, token = w_token,
        who = w_who, session = w_session, since = t, expires = t + w_ttl * 1000 WHERE name = p_name;
      LEAVE waiters;
    END IF;
    CALL lock_runtime_may_enter(p_name, w_kind, v_may);
    IF NOT v_may THEN LEAVE waiters; END IF;
    DELETE FROM lock_runtime_waiter WHERE name = p_name AND place = w_place AND token = w_token;
    UPDATE lock_runtime_lock SET waiters = waiters - 1, head = w_place - 1 WHERE name = p_name;
    CALL lock_runtime_enter(p_name, w_kind, w_token, w_who, w_ttl, w_session, v_fence);
    IF w_kind = 'x' THEN LEAVE waiters; END IF;
    SELECT kind, head, waiters INTO v_kind, v_head, v_waiters FROM lock_runtime_lock WHERE name = p_name;
  END LOOP;
END
//
-- What a caller that is not granted the lock is told: the lease that ends first, and who waits. The number of waiters that
-- the caller has itself does not count among the others.
CREATE PROCEDURE lock_runtime_describe(
  IN p_name VARBINARY(1155), IN p_own INT, OUT p_left BIGINT, OUT p_holder BLOB, OUT p_others INT, OUT p_longest BIGINT
)
SQL SECURITY DEFINER
BEGIN
  DECLARE t BIGINT DEFAULT {clock};
  DECLARE v_kind VARBINARY(12);
  DECLARE v_token BINARY(16);
  DECLARE v_who BLOB;
  DECLARE v_low, v_head, v_expires, v_first BIGINT;
  DECLARE v_waiters INT DEFAULT 0;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_first = NULL;
  SELECT kind, token, who, low, head, expires, waiters INTO v_kind, v_token, v_who, v_low, v_head, v_expires, v_waiters
    FROM lock_runtime_lock WHERE name = p_name;
  IF v_kind <> 'x' THEN
    SET v_expires = 0;
    SELECT expires, token, who INTO v_expires, v_token, v_who FROM lock_runtime_sharer
      WHERE name = p_name AND fence >= v_low AND expires > t ORDER BY expires LIMIT 1;
  END IF;
  SET p_left = 0, p_holder = '', p_longest = 0, p_others = GREATEST(0, v_waiters - p_own);
  IF v_expires > t THEN
    SET p_left = CEIL((v_expires - t) / 1000), p_holder = CONCAT_WS(' ', LOWER(HEX(v_token)), NULLIF(v_who, ''));
  END IF;
  IF p_others > 0 THEN
    SELECT place INTO v_first FROM lock_runtime_waiter
      WHERE name = p_name AND place > v_head ORDER BY name, place, token LIMIT 1;
    SET p_longest = GREATEST(0, COALESCE(t - v_first, 0)) DIV 1000;
  END IF;
END
//
-- quarantine_left(longest): for how many ms nothing is granted, where no ttl is larger than longest; 0 for none.
--
-- A server may have forgotten leases if its row of run is missing, as after a start, or if primary names another server, as
-- after a failover. The longest of these leases ends that long after the server has noticed this.
CREATE PROCEDURE lock_runtime_quarantine_left(IN p_longest BIGINT, OUT p_left BIGINT)
SQL SECURITY DEFINER
BEGIN
  DECLARE v_server VARBINARY(400);
  DECLARE v_noticed BIGINT;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_noticed = NULL;
  SET p_left = 0;
  IF p_longest > 0 THEN
    SET v_server = CONCAT(@@hostname, ':', @@port, ':', @@server_id);
    SELECT GREATEST(r.noticed, p.noticed) INTO v_noticed
      FROM lock_runtime_run r JOIN lock_runtime_primary p ON p.server = r.server WHERE r.server = v_server;
    IF v_noticed IS NULL THEN
      {only a primary}
      SET v_noticed = {clock};
      -- With GTIDs, MySQL refuses a write to a table in memory behind other writes of a transaction, even one without effect.
      IF NOT EXISTS (SELECT 1 FROM lock_runtime_run WHERE server = v_server) THEN
        INSERT IGNORE INTO lock_runtime_run (server, noticed) VALUES (v_server, v_noticed);
      END IF;
      INSERT INTO lock_runtime_primary (one, server, noticed) VALUES (TRUE, v_server, v_noticed)
        ON DUPLICATE KEY UPDATE noticed = IF(server = v_server, noticed, v_noticed), server = v_server;
    ELSEIF v_noticed > {clock} THEN
      -- What was noticed while the clock was ahead counts from now on, or it would last for as long as the clock has gone back.
      {only a primary}
      SET v_noticed = {clock};
      IF EXISTS (SELECT 1 FROM lock_runtime_run WHERE server = v_server AND noticed > v_noticed) THEN
        UPDATE lock_runtime_run SET noticed = v_noticed WHERE server = v_server;
      END IF;
      UPDATE lock_runtime_primary SET noticed = LEAST(noticed, v_noticed) WHERE server = v_server;
    END IF;
    SET p_left = GREATEST(0, CEIL((v_noticed - {clock}) / 1000 + p_longest));
  END IF;
END
//
CREATE PROCEDURE lock_runtime_quarantined(IN p_longest BIGINT)
SQL SECURITY DEFINER
BEGIN
  DECLARE v_left BIGINT;
  CALL lock_runtime_quarantine_left(p_longest, v_left);
  SELECT v_left;
END
//

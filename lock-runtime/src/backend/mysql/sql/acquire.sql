-- acquire(name, token, who, kind, ttl, session, wait, place, most, longest) → reply: takes a lock that may be held and
-- that nobody waits for, or joins the queue. A token that holds the lock already is extended instead of finding itself in
-- the way.
--
-- kind     x, r, p3, p3/2 to take two of three permits
-- wait     false to try once
-- place    that of an earlier token of the same waiter, or null
-- most     how many may wait at most, or null
-- longest  the longest ttl of all, for the quarantine; 0 for no quarantine
--
-- A reply has these columns:
--
-- status   granted, waiting, busy, gone, quarantined; in many also: ours, not ours; in adopt: no ticket
-- fence    granted
-- place    waiting
-- left     waiting, busy: ms of the lease that ends first; quarantined: of the quarantine
-- holder   waiting, busy: whose lease that is
-- others   waiting, busy: how many others wait
-- longest  waiting, busy: for how many ms the first of the queue has waited
-- kind     unused
-- number   in many: the number of the call, from 1

-- All of acquire but the quarantine and the transaction; writes the reply. A statement costs the server as much as a row
-- that it reads, so a lock that is free, or that somebody else holds alone, is looked at once.
CREATE PROCEDURE lock_runtime_acquire_in(
  IN p_name VARBINARY(1155), IN p_token BINARY(16), IN p_who BLOB, IN p_kind VARBINARY(24), IN p_ttl INT,
  IN p_session BINARY(16), IN p_wait BOOL, IN p_place BIGINT, IN p_most INT, IN p_number INT
)
SQL SECURITY DEFINER
BEGIN
  DECLARE v_found BOOL DEFAULT TRUE;
  DECLARE v_may, v_taken BOOL DEFAULT FALSE;
  DECLARE v_kind VARBINARY(12);
  DECLARE v_token BINARY(16);
  DECLARE v_last, v_fence, v_expires, v_place, v_tail, v_left, v_longest BIGINT;
  DECLARE v_waiters, v_others INT;
  DECLARE v_holder BLOB;
  DECLARE t BIGINT;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_found = FALSE;
  IF p_kind NOT IN ('x', 'r') AND CONVERT(p_kind USING latin1) NOT REGEXP '^p[1-9][0-9]*(/[1-9][0-9]*)?$' THEN
    SIGNAL SQLSTATE '22023' SET MESSAGE_TEXT = 'the kind is x, r, p and a number, or that with / and how many to take';
  END IF;
  {only a primary}
  SELECT kind, token, fence, expires, waiters, tail INTO v_kind, v_token, v_last, v_expires, v_waiters, v_tail
    FROM lock_runtime_lock WHERE name = p_name FOR UPDATE;
  IF NOT v_found OR p_most IS NOT NULL THEN
    IF NOT v_found THEN CALL lock_runtime_make(p_name); END IF;
    IF p_most IS NOT NULL THEN CALL lock_runtime_make_room(p_name, p_session, p_most, p_wait); END IF;
    SELECT kind, token, fence, expires, waiters, tail INTO v_kind, v_token, v_last, v_expires, v_waiters, v_tail
      FROM lock_runtime_lock WHERE name = p_name FOR UPDATE;
  END IF;
  SET t = {clock}, v_taken = v_kind = 'x' AND v_expires > t AND NOT (v_token <=> p_token);
  IF p_kind = 'x' AND v_kind = 'x' AND v_expires <= t AND v_waiters = 0 THEN
    SELECT TRUE INTO v_may FROM lock_runtime_guard WHERE name = p_name FOR UPDATE SKIP LOCKED;
  END IF;
  IF v_may THEN
    SET v_fence = GREATEST(v_last + 1, t);
    UPDATE lock_runtime_guard SET low = v_fence, alone = TRUE WHERE name = p_name;
    UPDATE lock_runtime_lock SET fence = v_fence, low = v_fence, token = p_token, who = p_who, session = NULL, since = t,
      expires = t + p_ttl * 1000 WHERE name = p_name;
  ELSEIF NOT v_taken THEN
    CALL lock_runtime_extend(p_name, p_token, p_ttl, v_fence);
    -- Waiters go first.
    IF v_fence IS NULL AND v_waiters > 0 AND NOT p_wait THEN
      CALL lock_runtime_serve(p_name, p_session);
      SELECT waiters INTO v_waiters FROM lock_runtime_lock WHERE name = p_name;
    END IF;
    IF v_fence IS NULL AND v_waiters = 0 THEN
      CALL lock_runtime_may_enter(p_name, p_kind, v_may);
      -- The lease that lasted the longest may have been ended early, in a quarantine.
      IF NOT v_may AND NOT p_wait AND v_kind <> 'x' THEN
        CALL lock_runtime_settle(p_name);
        CALL lock_runtime_may_enter(p_name, p_kind, v_may);
      END IF;
    END IF;
    IF v_may THEN CALL lock_runtime_enter(p_name, p_kind, p_token, p_who, p_ttl, NULL, v_fence); END IF;
  END IF;
  IF v_fence IS NULL AND p_wait THEN
    SET t = {clock};
    -- Behind everybody, also where the clock has gone back.
    SET v_place = COALESCE(p_place, IF(v_waiters = 0 OR t > v_tail, t, v_tail + 1));
    INSERT IGNORE INTO lock_runtime_waiter (name, place, token, who, kind, ttl, session)
      VALUES (p_name, v_place, p_token, p_who, p_kind, p_ttl, p_session);
    IF ROW_COUNT() > 0 THEN
      UPDATE lock_runtime_lock SET waiters = waiters + 1, head = LEAST(head, v_place - 1), tail = GREATEST(tail, v_place)
        WHERE name = p_name;
    END IF;
    IF NOT v_taken THEN
      CALL lock_runtime_serve(p_name, p_session);
      CALL lock_runtime_extend(p_name, p_token, p_ttl, v_fence);
    END IF;
  END IF;
  IF v_fence IS NOT NULL THEN
    SELECT 'granted', v_fence, NULL, NULL, NULL, NULL, NULL, NULL, p_number;
  ELSE
    CALL lock_runtime_describe(p_name, p_wait, v_left, v_holder, v_others, v_longest);
    SET v_place = NULL;
    SELECT place INTO v_place FROM lock_runtime_waiter WHERE token = p_token;
    SELECT CASE WHEN NOT p_wait THEN 'busy' WHEN v_place IS NULL THEN 'gone' ELSE 'waiting' END,
      NULL, v_place, v_left, v_holder, v_others, v_longest, NULL, p_number;
  END IF;
END
//
-- Where as many wait as may at most, lets those enter who may, forgets those who are gone, and says whether one more may.
CREATE PROCEDURE lock_runtime_make_room(
  IN p_name VARBINARY(1155), IN p_session BINARY(16), IN p_most INT, INOUT p_wait BOOL
)
SQL SECURITY DEFINER
BEGIN
  DECLARE v_waiters INT;
  SELECT waiters INTO v_waiters FROM lock_runtime_lock WHERE name = p_name;
  IF v_waiters >= p_most THEN
    CALL lock_runtime_serve(p_name, p_session);
    DELETE FROM lock_runtime_waiter WHERE name = p_name AND {gone};
    UPDATE lock_runtime_lock SET waiters = waiters - ROW_COUNT() WHERE name = p_name;
    SELECT waiters INTO v_waiters FROM lock_runtime_lock WHERE name = p_name;
  END IF;
  SET p_wait = p_wait AND v_waiters < p_most;
END
//
CREATE PROCEDURE lock_runtime_acquire{noted}(
  IN p_name VARBINARY(1155), IN p_token BINARY(16), IN p_who BLOB, IN p_kind VARBINARY(24), IN p_ttl INT,
  IN p_session BINARY(16), IN p_wait BOOL, IN p_place BIGINT, IN p_most INT, IN p_longest BIGINT{keep}
)
SQL SECURITY DEFINER
BEGIN
  DECLARE v_left BIGINT DEFAULT 0;
  {begin}
  IF p_longest > 0 THEN CALL lock_runtime_quarantine_left(p_longest, v_left); END IF;
  IF v_left > 0 THEN
    SELECT 'quarantined', NULL, NULL, v_left, NULL, NULL, NULL, NULL, NULL;
  ELSE
    CALL lock_runtime_acquire_in(p_name, p_token, p_who, p_kind, p_ttl, p_session, p_wait, p_place, p_most, NULL);
    {note holders}
  END IF;
  COMMIT;
  {only a primary}
END
//

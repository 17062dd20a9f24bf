-- ask(name, tokens, ttls, session, longest) → where do these tokens of one session stand? A token that holds the lock is
-- extended to its ttl. Serves the queue where a lease has ended. Never joins: a token that is queued again after a late grant
-- would make two holders.
--
-- tokens, ttls  one behind the other, in 16 and 4 bytes
-- longest       as in acquire. In the quarantine there are no fences in the answer, and left is what is left of that
--
-- The answer has left, holder, others and longest as a reply has; 1 if one of the tokens is the first of the queue, else 0; for
-- each token its fence if it is granted, 0 if it waits, -1 if it is gone; and how many come before all tokens that wait.
CREATE PROCEDURE lock_runtime_ask{noted}(
  IN p_name VARBINARY(1155), IN p_tokens BLOB, IN p_ttls BLOB, IN p_session BINARY(16), IN p_longest BIGINT{keep}
)
SQL SECURITY DEFINER
BEGIN
  DECLARE i, v_count, v_before, v_others, v_waiters INT DEFAULT 0;
  DECLARE v_fence, v_head, v_longest, v_expires, v_place, v_mine, v_first, t BIGINT;
  DECLARE v_left BIGINT DEFAULT 0;
  DECLARE v_kind VARBINARY(12);
  DECLARE v_token, v_holds BINARY(16);
  DECLARE v_who, v_holder BLOB;
  DECLARE v_found, v_waits, v_locks, v_granted BOOL DEFAULT FALSE;
  DECLARE v_fences TEXT CHARACTER SET latin1 DEFAULT '';
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_found = FALSE;
  {begin}
  IF p_longest > 0 THEN CALL lock_runtime_quarantine_left(p_longest, v_left); END IF;
  IF v_left > 0 THEN
    SELECT v_left, NULL, NULL, NULL, NULL, NULL, NULL;
  ELSE
    SET v_count = LENGTH(p_tokens) DIV 16, v_found = TRUE;
    SELECT kind, token, who, head, expires, waiters INTO v_kind, v_holds, v_who, v_head, v_expires, v_waiters
      FROM lock_runtime_lock WHERE name = p_name;
    SET t = {clock}, v_locks = NOT v_found OR v_kind <> 'x' OR v_expires <= t;
    -- One that was handed the lock has nothing else to ask for.
    IF NOT v_locks AND v_holds = p_tokens THEN
      CALL lock_runtime_take(p_name, FALSE, v_found);
      CALL lock_runtime_extend(p_name, p_tokens, CONV(HEX(p_ttls), 16, 10), v_fence);
      SET v_granted = v_fence IS NOT NULL, v_locks = NOT v_granted;
    END IF;
    WHILE i < v_count AND NOT v_locks AND NOT v_granted DO
      SET v_place = NULL;
      SELECT place INTO v_place FROM lock_runtime_waiter WHERE token = SUBSTR(p_tokens, 16 * i + 1, 16);
      SET v_locks = v_place IS NULL, v_mine = LEAST(COALESCE(v_mine, v_place), v_place), i = i + 1;
    END WHILE;
    -- Whoever waits behind a lease needs no lock of the row.
    IF v_locks THEN
      SET v_mine = NULL;
      CALL lock_runtime_take(p_name, FALSE, v_found);
      IF NOT v_found THEN
        SELECT TRUE INTO v_waits FROM lock_runtime_waiter WHERE name = p_name LIMIT 1;
        IF v_waits THEN CALL lock_runtime_take(p_name, TRUE, v_found); END IF;
      END IF;
      IF v_found THEN CALL lock_runtime_serve(p_name, p_session); END IF;
    END IF;
    SET i = 0;
    WHILE i < v_count DO
      SET v_token = SUBSTR(p_tokens, 16 * i + 1, 16), v_waits = NOT v_locks;
      IF v_locks THEN
        SET v_place = NULL, v_fence = NULL;
        SELECT place INTO v_place FROM lock_runtime_waiter WHERE token = v_token;
        SET v_waits = v_place IS NOT NULL;
        IF v_waits THEN
          SET v_mine = LEAST(COALESCE(v_mine, v_place), v_place);
        ELSE
          CALL lock_runtime_extend(p_name, v_token, CONV(HEX(SUBSTR(p_ttls, 4 * i + 1, 4)), 16, 10), v_fence);
        END IF;
      END IF;
      SET v_fences = CONCAT(v_fences, IF(v_fences = '', '', ','), COALESCE(v_fence, IF(v_waits, 0, -1))), i = i + 1;
    END WHILE;
    IF v_locks THEN
      CALL lock_runtime_describe(p_name, 1, v_left, v_holder, v_others, v_longest);
      SELECT head INTO v_head FROM lock_runtime_lock WHERE name = p_name;
    ELSE
      SET v_left = CEIL((v_expires - t) / 1000), v_holder = CONCAT_WS(' ', LOWER(HEX(v_holds)), NULLIF(v_who, ''));
      SET v_others = GREATEST(0, v_waiters - 1), v_longest = 0;
    END IF;
    IF NOT v_granted THEN
      SELECT place INTO v_first FROM lock_runtime_waiter
        WHERE name = p_name AND place > COALESCE(v_head, 0) ORDER BY name, place, token LIMIT 1;
      IF v_others > 0 AND NOT v_locks THEN SET v_longest = GREATEST(0, COALESCE(t - v_first, 0)) DIV 1000; END IF;
      IF v_first < v_mine THEN
        SELECT COUNT(*) INTO v_before FROM (
          SELECT 1 FROM lock_runtime_waiter WHERE name = p_name AND place >= v_first AND place < v_mine LIMIT 1000
        ) b;
      END IF;
    END IF;
    SELECT v_left, v_holder, v_others, v_longest, v_before = 0, CONCAT('{', v_fences, '}'), v_before;
    {note holders}
  END IF;
  COMMIT;
  {only a primary}
END
//

-- The last grants of locks, for managers that keep a history: acquire_noted and the others do what the procedures without
-- _noted do, and write to the table history. The procedures without it do not look at that table, except force.
--
-- keep  how many grants of the lock to remember

-- Notes the holders that are not noted yet, and forgets what is too much; null keeps everything.
CREATE PROCEDURE lock_runtime_note_holders(IN p_name VARBINARY(1155), IN p_keep INT)
SQL SECURITY DEFINER
BEGIN
  DECLARE t BIGINT DEFAULT {clock};
  DECLARE v_oldest BIGINT;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_oldest = NULL;
  INSERT IGNORE INTO lock_runtime_history (name, fence, token, who, kind, since)
    SELECT l.name, l.fence, l.token, l.who, l.kind, l.since FROM lock_runtime_lock l
      WHERE l.name = p_name AND l.kind = 'x' AND l.token IS NOT NULL AND l.expires > t
    UNION ALL
    SELECT l.name, s.fence, s.token, s.who, l.kind, s.since
      FROM lock_runtime_lock l JOIN lock_runtime_sharer s ON s.name = l.name AND s.fence >= l.low
      WHERE l.name = p_name AND l.kind <> 'x' AND s.token IS NOT NULL AND s.expires > t;
  IF ROW_COUNT() > 0 AND p_keep IS NOT NULL THEN
    SELECT fence INTO v_oldest FROM lock_runtime_history WHERE name = p_name ORDER BY name DESC, fence DESC LIMIT p_keep, 1;
    DELETE FROM lock_runtime_history WHERE name = p_name AND fence <= v_oldest;
  END IF;
END
//
-- Notes that the grant of a token has ended.
CREATE PROCEDURE lock_runtime_note_release(IN p_name VARBINARY(1155), IN p_token BINARY(16), IN p_moment BIGINT)
SQL SECURITY DEFINER
BEGIN
  UPDATE lock_runtime_history SET ended = p_moment, how = 'released'
    WHERE name = p_name AND token = p_token AND ended IS NULL;
END
//
-- grants(name) → the grants that are remembered, the newest first: kind, who, fence, since, until, how (null where a grant has
-- not ended, or its lease expired), whether it holds the lock now.
CREATE PROCEDURE lock_runtime_grants(IN p_name VARBINARY(1155))
SQL SECURITY DEFINER
BEGIN
  DECLARE t BIGINT DEFAULT {clock};
  SELECT g.kind, CONCAT_WS(' ', LOWER(HEX(g.token)), NULLIF(g.who, '')), g.fence, g.since, g.ended, g.how,
    EXISTS (SELECT 1 FROM lock_runtime_lock l WHERE l.name = g.name AND l.kind = 'x' AND l.token = g.token AND l.expires > t)
    OR EXISTS (SELECT 1 FROM lock_runtime_lock l JOIN lock_runtime_sharer s ON s.name = l.name AND s.fence >= l.low
      WHERE l.name = g.name AND l.kind <> 'x' AND s.token = g.token AND s.expires > t)
  FROM lock_runtime_history g WHERE g.name = p_name ORDER BY g.fence DESC;
END
//

-- The version of the tables and procedures.
CREATE PROCEDURE lock_runtime_version()
SQL SECURITY DEFINER
BEGIN
  SELECT version FROM lock_runtime_meta;
END
//
INSERT INTO lock_runtime_meta (one, version) VALUES (TRUE, {version})
  ON DUPLICATE KEY UPDATE version = GREATEST(version, {version})
//

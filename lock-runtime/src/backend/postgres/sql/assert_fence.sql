-- assert_fence(key, fence, prefix): for transactions of yours. Raises LR001 unless the lock is held with this fencing
-- token, and lets no other holder begin until the transaction has ended, however late that is.
--
--   BEGIN;
--   SELECT lock_runtime.assert_fence('acct:1', 1795370634480661);
--   UPDATE account SET …;
--   COMMIT;
--
-- The transaction may not be idle for more than 60 s after this, since nobody else is granted the lock meanwhile. A
-- standby refuses the call: it lags behind, and its locks keep nobody out.

-- Whether a lock is held with this fence, as the snapshot shows it: alone, or among others.
CREATE OR REPLACE FUNCTION is_held(name text, fence bigint, OUT alone bool, OUT shared bool) LANGUAGE plpgsql AS $$
DECLARE
  l lock;
BEGIN
  SELECT * INTO l FROM lock k WHERE k.name = is_held.name ORDER BY k.ver DESC LIMIT 1;
  alone := coalesce(l.kind = 'x' AND l.token IS NOT NULL AND l.fence = is_held.fence, false);
  -- Rows of sharers outlive a row of the lock that somebody has deleted.
  shared := coalesce(l.kind <> 'x' AND l.low <= is_held.fence, false) AND EXISTS (
    SELECT FROM sharer s WHERE s.name = is_held.name AND s.fence = is_held.fence AND s.token IS NOT NULL);
END $$;

-- Fails with 40001 if what is_held has found has changed since the snapshot of the transaction. Only a lock of the row
-- shows that; it is rolled back at once, since renewals would wait for it.
CREATE OR REPLACE FUNCTION assert_unchanged(name text, fence bigint, alone bool) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF alone THEN
    PERFORM FROM lock k WHERE k.name = assert_unchanged.name ORDER BY k.ver DESC LIMIT 1 FOR SHARE;
  ELSE
    PERFORM FROM sharer s WHERE s.name = assert_unchanged.name AND s.fence = assert_unchanged.fence FOR SHARE;
  END IF;
  RAISE EXCEPTION USING ERRCODE = 'LR003';
EXCEPTION WHEN SQLSTATE 'LR003' THEN
END $$;

CREATE OR REPLACE FUNCTION assert_fence(key text, fence bigint, prefix text DEFAULT 'lock') RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  name CONSTANT text := prefix || ':{' || key || '}';
  idle CONSTANT interval := current_setting('idle_in_transaction_session_timeout')::interval;
  alone bool;
  shared bool;
BEGIN
  IF pg_is_in_recovery() THEN
    RAISE EXCEPTION 'the server is a standby, which does not know who holds the lock "%"', key
      USING ERRCODE = '25006', HINT = 'Assert the fencing token on the primary.';
  END IF;
  IF idle = interval '0' OR idle > interval '60 s' THEN
    PERFORM set_config('idle_in_transaction_session_timeout', '60s', true);
  END IF;
  PERFORM pg_advisory_xact_lock_shared(guard(name));
  SELECT h.alone, h.shared INTO alone, shared FROM is_held(name, fence) h;
  IF NOT (alone OR shared) THEN
    RAISE EXCEPTION 'the lock "%" is not held with the fencing token %', key, fence USING ERRCODE = 'LR001';
  END IF;
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    PERFORM assert_unchanged(name, fence, alone);
  END IF;
END $$;


-- pass(name, token, fence) → whether the lock is held under this fence now: in a chain, the next holder has it from the
-- one before. False where it is not ours any more, and while a transaction that has asserted an earlier fence of the
-- chain is open.
CREATE OR REPLACE FUNCTION pass(name text, token uuid, fence bigint) RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
  l lock := take(pass.name, make => false);
  ours bool := l.kind = 'x' AND l.token = pass.token AND l.expires > clock_timestamp()
    AND pass.fence BETWEEN l.fence AND l.fence + l.chain;
BEGIN
  PERFORM flush(false);
  IF ours IS NOT TRUE OR pass.fence = l.fence THEN RETURN coalesce(ours, false); END IF;
  IF NOT pg_try_advisory_xact_lock(guard(pass.name)) THEN RETURN false; END IF;
  l.chain := l.fence + l.chain - pass.fence;
  l.fence := pass.fence;
  l.since := clock_timestamp();
  PERFORM put(l);
  RETURN true;
END $$;


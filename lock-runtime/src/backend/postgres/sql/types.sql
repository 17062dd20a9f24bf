-- Replies. Columns are only ever added, at the end.
DO $$
BEGIN
  IF to_regtype('reply') IS NULL THEN
    CREATE TYPE reply AS (
      status     text,    -- granted, waiting, busy, gone, quarantined; in many also: ours, not ours; in adopt: no ticket
      fence      bigint,  -- granted
      place      bigint,  -- waiting
      left_ms    bigint,  -- waiting, busy: of the lease that ends first; quarantined: of the quarantine
      holder     text,    -- waiting, busy: whose lease that is
      others     int,     -- waiting, busy: how many others wait
      longest_ms bigint,  -- waiting, busy: for how long the first of the queue has waited
      kind       text,    -- unused
      call       int      -- in many: the number of the call, from 1
    );
  END IF;
  IF to_regtype('standings') IS NULL THEN
    CREATE TYPE standings AS (
      left_ms    bigint,
      holder     text,
      others     int,
      longest_ms bigint,
      first      int,      -- which of the tokens is the first of the queue, from 1; 0 if none is
      fences     bigint[]  -- for each token: its fence if it is granted, 0 if it waits, -1 if it is gone
    );
  END IF;
END $$;


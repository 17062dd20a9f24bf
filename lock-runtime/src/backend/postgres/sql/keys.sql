-- Names and advisory locks. The keys of advisory locks are seeded by the oid of a table, so that two schemas of one
-- database do not meet.

-- The lock that assert_fence holds to the end of a transaction, and that a grant to the next holder tries.
CREATE OR REPLACE FUNCTION guard(name text) RETURNS bigint LANGUAGE sql STABLE AS
$$ SELECT hashtextextended(name, 'lock'::regclass::oid::bigint) $$;

-- The lock that a session holds as long as its connection is open.
CREATE OR REPLACE FUNCTION bell_key(session uuid) RETURNS bigint LANGUAGE sql STABLE AS
$$ SELECT hashtextextended(session::text, 'waiter'::regclass::oid::bigint) $$;

-- bell(session) → the same for clients, which take it when they connect.
CREATE OR REPLACE FUNCTION bell(session uuid) RETURNS bigint LANGUAGE sql STABLE AS
$$ SELECT bell_key(session) $$;

-- The lock under which a row is made.
CREATE OR REPLACE FUNCTION making(name text) RETURNS bigint LANGUAGE sql STABLE AS
$$ SELECT hashtextextended(name, 'meta'::regclass::oid::bigint) $$;

CREATE OR REPLACE FUNCTION hex(id uuid) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT replace(id::text, '-', '') $$;

-- Where a session is notified.
CREATE OR REPLACE FUNCTION channel(session uuid) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT 'lock_runtime_' || hex(session) $$;

-- Whether the server's queue of notifications has room: a full one fails the commit. Clients that are not notified ask.
CREATE OR REPLACE FUNCTION may_notify() RETURNS bool LANGUAGE sql VOLATILE AS
$$ SELECT pg_notification_queue_usage() < 0.9 $$;

-- The name of a holder: its token, and who it is. While it cools down or is a ticket's it has no token, and who is all of the name.
CREATE OR REPLACE FUNCTION holder_name(token uuid, who text) RETURNS text LANGUAGE sql STABLE AS
$$ SELECT concat_ws(' ', hex(token), nullif(who, '')) $$;


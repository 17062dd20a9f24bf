-- Extends a lease if it is ours; never makes a key.
--
-- KEYS    as in dispatch.lua
-- ARGV[1] name  [2] ttl in ms  [3] kind
-- ...     the lock's owner
-- reply   name, behind a '-' where it was not ours
local owner = ...
return (owner and extend(owner, ARGV[1], ARGV[3], ARGV[2]) and '' or '-') .. ARGV[1]

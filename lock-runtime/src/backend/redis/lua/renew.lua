-- Extends a lease if it is ours; never makes a key.
--
-- KEYS    as in functions.lua
-- ARGV[1] name  [2] ttl in ms  [3] kind
-- reply   name, behind a '-' where it was not ours
return (owner and extend(owner, ARGV[1], ARGV[3], ARGV[2]) and '' or '-') .. ARGV[1]

-- Extends a lease if it is ours; never makes a key.
--
-- KEYS    as in dispatch.lua
-- ARGV[1] name  [2] ttl in ms  [3] kind
-- reply   {name, 1 where it was ours, else 0}
local owner = redis.call('GET', KEYS[1])
return {ARGV[1], owner and extend(owner, ARGV[1], ARGV[3], ARGV[2]) and 1 or 0}

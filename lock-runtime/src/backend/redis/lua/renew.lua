-- Extends a lease if it is ours; never makes a key of the lock.
--
-- KEYS    as in functions.lua
-- ARGV[1] name  [2] ttl in ms  [3] kind  [4] to note its grant, the fence  [5] and for how many
--         us it is held
-- reply   name, behind a '-' where it was not ours
if not (owner and extend(owner, ARGV[1], ARGV[3], ARGV[2])) then return '-' .. ARGV[1] end
if ARGV[4] then note_grant(OWNER, ARGV[1], ARGV[2], ARGV[4], ARGV[5]) end
return ARGV[1]

-- The common case, before anything is made that it does not need: a lock that
-- nobody else holds.
local owner = redis.call('GET', KEYS[1])
if owner ~= ARGV[1] then return general(owner) end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return owner

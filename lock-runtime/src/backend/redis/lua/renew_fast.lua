-- The common case, before any function is made: a lock that nobody else holds.
local owner = redis.call('GET', KEYS[1])
if owner == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  if ARGV[4] then note_grant(KEYS[1], owner, ARGV[2], ARGV[4], ARGV[5]) end
  return owner
end


-- The common case, before anything is made that it does not need: a lock that
-- nobody else holds.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return ARGV[1]
end

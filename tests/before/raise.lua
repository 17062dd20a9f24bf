-- Extends a lease if it is ours, and raises the counter to a number that another
-- server has given out: whoever takes the lock here next gets a larger one.
--
-- ARGV[1] name  [2] ttl in ms  [3] kind  [4] the least that the counter may be
-- reply   name, behind a '-' where the lock was not ours
if not extend(redis.call('GET', OWNER), ARGV[1], ARGV[3], ARGV[2]) then
  return '-' .. ARGV[1]
end
if tonumber(redis.call('GET', FENCE) or 0) < tonumber(ARGV[4]) then
  redis.call('SET', FENCE, ARGV[4])
end
return ARGV[1]

-- Extends the lease if it is ours; never makes a key.
--
-- KEYS[1] owner
-- ARGV[1] token  [2] ttl in ms
-- reply   {token, 1 where it was ours, else 0}
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return {ARGV[1], 0}
end
return {ARGV[1], redis.call('PEXPIRE', KEYS[1], ARGV[2])}

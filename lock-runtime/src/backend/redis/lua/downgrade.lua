-- Lets a writer go on as a reader for what is left of its lease, and hands the lock to the readers
-- who are next. The lock is never without an owner in between.
--
-- ARGV[1] name
-- reply   name, behind a '-' where the lock was not ours
local name = ARGV[1]
local owner = redis.call('GET', OWNER)
if owner == name then
  local left = redis.call('PTTL', OWNER)
  -- What a lock that was lost has left behind. Passes when memory is full, and what follows
  -- passes with it.
  redis.call('DEL', HOLDERS)
  redis.call('SET', OWNER, '*r', 'KEEPTTL')
  local now = millis()
  redis.call('ZADD', HOLDERS, digits(now + left), name)
  settle(now)
  dispatch('*r')
  return name
end
-- An earlier call, whose answer was lost, may have done it.
local ends = shared(owner) == 'r' and redis.call('ZSCORE', HOLDERS, name)
return (ends and millis() < tonumber(ends) and '' or '-') .. name

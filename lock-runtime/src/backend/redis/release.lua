-- Lets go of the lock if it is ours and hands it to the first in line; with a
-- member, leaves the line before (a grant that raced is passed on).
--
-- ARGV[1] token  [2] member, or ''
-- reply   {token, 1 where the lock was ours, else 0}
if ARGV[2] ~= '' and redis.call('ZREM', KEYS[2], ARGV[2]) == 1 then tidy() end
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return {ARGV[1], 0}
end
redis.call('DEL', KEYS[1])
dispatch()
return {ARGV[1], 1}

-- Lets go of the lock if it is ours and hands it to who may enter; with a
-- member, leaves the line before (a grant that raced is passed on). A lock that
-- is to rest keeps an owner that nobody knows, so that neither a late renewal
-- nor this call again finds it.
--
-- ARGV[1] name  [2] member, or ''  [3] how many ms the lock rests; what says
--         nothing at the end is left out
-- reply   name, behind a '-' where the lock was not ours
local name, member, rest = ARGV[1], ARGV[2] or '', ARGV[3]
-- `owner` was read in release_alone.lua.
local in_line = member ~= '' and redis.call('ZREM', KEYS[2], member) == 1
if in_line then tidy() end

local reply = '-' .. name
if owner == name then
  reply = name
  if rest then
    redis.call('PEXPIRE', KEYS[1], rest)
    redis.call('SET', KEYS[1], '-' .. name, 'KEEPTTL')
    return reply
  end
  redis.call('DEL', KEYS[1])
  owner = nil
elseif owner and string.sub(owner, 1, 1) == '*' then
  local ends = redis.call('ZSCORE', KEYS[5], name)
  if ends then
    local now = millis()
    redis.call('ZREM', KEYS[5], name)
    if now < tonumber(ends) then
      reply = name
      if rest then redis.call('ZADD', KEYS[5], digits(now + rest), '-' .. name) end
    end
    settle(now)
    owner = redis.call('GET', KEYS[1])
  elseif not in_line then
    return reply
  end
else
  return reply
end
dispatch(owner)
return reply

-- Lets go of the lock if it is ours and hands it to who may enter; with a
-- member, leaves the line before (a grant that raced is passed on). A lock that
-- is to rest keeps an owner that nobody knows, so that neither a late renewal
-- nor this call again finds it.
--
-- ARGV[1] name  [2] member, or ''  [3] how many ms the lock rests, at least
--         one; what says nothing at the end is left out
-- reply   name, behind a '-' where the lock was not ours
local name, member, rest = ARGV[1], ARGV[2] or '', tonumber(ARGV[3])
-- With less, or with nan, the lock would get no ttl.
if rest and not (rest >= 1) then rest = nil end
local in_line = member ~= '' and redis.call('ZREM', QUEUE, member) == 1
if in_line then tidy() end

local reply = '-' .. name
if owner == name then
  reply = name
  if rest then
    redis.call('PEXPIRE', OWNER, digits(rest))
    redis.call('SET', OWNER, '-' .. name, 'KEEPTTL')
    return reply
  end
  redis.call('DEL', OWNER)
  owner = nil
elseif shared(owner) then
  local ends = redis.call('ZSCORE', HOLDERS, name)
  if ends then
    local now = millis()
    redis.call('ZREM', HOLDERS, name)
    if now < tonumber(ends) then
      reply = name
      if rest then redis.call('ZADD', HOLDERS, digits(now + rest), '-' .. name) end
    end
    settle(now)
    owner = redis.call('GET', OWNER)
  elseif not in_line then
    return reply
  end
else
  return reply
end
dispatch(owner, head, place, deaf)
return reply

-- Releases the lock if it is ours and hands it to the waiters that may enter; with a
-- member, leaves the queue before (a grant that raced is handed over). During a
-- cooldown the lock keeps an owner that nobody knows, so that neither a late renewal
-- nor this call again finds it.
--
-- ARGV[1] name  [2] member, or ''  [3] the cooldown in ms, at least
--         one, or ''  [4] 1 to forget the note of the grant; what says nothing at the end is left
--         out
-- reply   name, behind a '-' where the lock was not ours
local name, member, cooldown = ARGV[1], ARGV[2] or '', tonumber(ARGV[3])
-- With less, or with nan, the lock would get no ttl.
if cooldown and not (cooldown >= 1) then cooldown = nil end
if ARGV[4] then redis.pcall('DEL', OWNER .. ':n:' .. string.sub(name, 1, 32)) end
local waited = member ~= '' and redis.call('ZREM', QUEUE, member) == 1
if waited then tidy() end

local reply = '-' .. name
if owner == name then
  reply = name
  if cooldown then
    -- Passes when memory is full, and what follows passes with it. It deletes the key where its time has passed already: so
    -- the ttl is set again.
    redis.call('PEXPIRE', OWNER, digits(cooldown))
    redis.call('SET', OWNER, '-' .. name, 'PX', digits(cooldown))
    return reply
  end
  redis.call('DEL', OWNER)
  owner = nil
elseif shared(owner) then
  local ends = redis.call('ZSCORE', HOLDERS, name)
  if ends then
    local now = millis()
    redis.call('ZREM', HOLDERS, name)
    local ours = now < tonumber(ends)
    if ours then
      reply = name
      if cooldown then lend('-' .. name, 1, now + cooldown) end
    end
    -- The rest of several permits.
    local number = 2
    while string.byte(owner, 2) == 112 and redis.call('ZREM', HOLDERS, permit(name, number)) == 1 do -- 'p'
      if ours and cooldown then
        redis.call('ZADD', HOLDERS, digits(now + cooldown), permit('-' .. name, number))
      end
      number = number + 1
    end
    settle(now)
    owner = redis.call('GET', OWNER)
  elseif not waited then
    return reply
  end
else
  return reply
end
dispatch(owner, head, position, deaf)
return reply

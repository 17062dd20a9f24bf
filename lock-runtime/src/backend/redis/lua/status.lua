-- Who holds the lock, and how many wait for it.
--
-- reply   {waiters, then for each holder: name, ms left of its lease}
local reply = {redis.call('ZCARD', QUEUE)}
local owner = redis.call('GET', OWNER)
if owner and string.sub(owner, 1, 1) == '*' then
  local now = millis()
  local holders = redis.call('ZRANGE', HOLDERS, 0, -1, 'WITHSCORES')
  for i = 1, #holders, 2 do
    if tonumber(holders[i + 1]) > now then
      reply[#reply + 1] = holders[i]
      reply[#reply + 1] = holders[i + 1] - now
    end
  end
elseif owner then
  reply[#reply + 1] = owner
  reply[#reply + 1] = redis.call('PTTL', OWNER)
end
return reply

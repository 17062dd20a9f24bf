-- Who holds the lock, and how many wait for it: those whose connections live, and
-- all who are too far behind to be looked at. Writes nothing.
--
-- reply   {waiters, then for each holder: name, ms left of its lease}
local function waiters()
  local count, now, silent = redis.call('ZCARD', QUEUE), time(), {}
  for _, member in ipairs(redis.call('ZRANGE', QUEUE, 0, MOST - 1)) do
    local channel = string.match(member, '^%a%d*:[1-9]%d*:([^\n]+)\n') or ''
    if silent[channel] == nil then silent[channel] = is_silent(channel, now) end
    if silent[channel] then count = count - 1 end
  end
  return count
end

local reply = {waiters()}
local owner = redis.call('GET', OWNER)
if shared(owner) then
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

-- Who holds the lock, how many wait for it, and who they are. Those whose connections
-- are silent do not count, unless they are too far behind to be looked at. Writes nothing.
--
-- reply   {waiters, the queue, then for each holder: name, ms left of its lease}; the queue
--         has for each waiter: kind, name, us of its wait
local function queue()
  local count, now, silent, queue = redis.call('ZCARD', QUEUE), time(), {}, {}
  local members = redis.call('ZRANGE', QUEUE, 0, MOST - 1, 'WITHSCORES')
  for i = 1, #members, 2 do
    local kind, channel, name = string.match(members[i], '^(%a%d*):[1-9]%d*:([^\n]+)\n(.+)$')
    channel = channel or ''
    if silent[channel] == nil then silent[channel] = is_silent(channel, now) end
    if silent[channel] then
      count = count - 1
    else
      queue[#queue + 1] = kind
      queue[#queue + 1] = name
      queue[#queue + 1] = math.max(0, now - members[i + 1])
    end
  end
  return count, queue
end

local reply = {queue()}
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

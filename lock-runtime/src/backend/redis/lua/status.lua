-- Who holds the lock, how many wait for it, and who they are. Those whose connections
-- are silent do not count, unless they are too far behind to be looked at. Writes nothing.
--
-- ARGV[1] 1 to read notes
-- reply   {waiters, the queue, then for each holder: name, ms left of its lease, its note as in
--          noted.lua, and then, if it is held, the kind in which that is and how many permits each
--          holder has}; the queue has for each waiter: kind, name, us of its wait
local function queue()
  local count, now, silent, queue = redis.call('ZCARD', QUEUE), time(), {}, {}
  local members = redis.call('ZRANGE', QUEUE, 0, MOST - 1, 'WITHSCORES')
  for i = 1, #members, 2 do
    local kind, channel, name = string.match(members[i], '^(%a[%d/]*):[1-9]%d*:([^\n]+)\n(.+)$')
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

local reply, now = {queue()}, time()
local function add(name, left)
  reply[#reply + 1] = name
  reply[#reply + 1] = left
  reply[#reply + 1] = ARGV[1] == '1' and noted(OWNER, name, now) or ''
end

local owner = redis.call('GET', OWNER)
local kind = shared(owner)
if kind then
  local millis = math.ceil(now / 1000)
  local holders = redis.call('ZRANGE', HOLDERS, 0, -1, 'WITHSCORES')
  local taken, of = {kind}, {}
  for i = 1, #holders, 2 do
    local more = string.match(holders[i], '^%+%d+ (.+)$')
    if more then
      of[more] = (of[more] or 1) + 1
    end
  end
  for i = 1, #holders, 2 do
    if tonumber(holders[i + 1]) > millis and string.byte(holders[i]) ~= 43 then -- '+'
      add(holders[i], holders[i + 1] - millis)
      taken[#taken + 1] = of[holders[i]] or 1
    end
  end
  reply[#reply + 1] = taken
elseif owner then
  add(owner, redis.call('PTTL', OWNER))
  reply[#reply + 1] = {'x', 1}
end
return reply

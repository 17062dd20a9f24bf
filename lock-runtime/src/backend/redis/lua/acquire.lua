-- Takes a lock that may be entered and that nobody waits for, or joins the queue.
-- Sent again under the same name it extends instead of finding itself in the way.
--
-- ARGV[1] name  [2] ttl in ms  [3] channel, or '' to try once
-- ARGV[4] kind, or '' for x; 'x+' where more of this connection wait or will, and may be
--         granted the lock together; 'x-' to be granted it alone  [5] the position of an earlier token of the same
--         waiter, or ''  [6] how many others may wait at most, for a waiter without a position: where more
--         do, it tries once
-- reply   name, a new line, fence: it is granted
--         {name, 'waiting', position, ms left of a holder, its name, how many others
--          wait, and if it is not in the fast path, ms for which the first has waited}
--         {name, 'busy', '', and the same from there}
--         {name, 'gone'}: our own channel has no listener
local name, ttl, channel, kind = ARGV[1], ARGV[2], ARGV[3], ARGV[4] or ''
local more, alone = kind == 'x+', kind == 'x-'
if kind == '' or more or alone then kind = 'x' end
if kind ~= 'x' and kind ~= 'r' and not string.match(taken_of(kind), '^p[1-9]%d*$') then
  return redis.error_reply('ERR the kind is x, r, or p and a number')
end
local owner = redis.call('GET', OWNER)
if owner and extend(owner, name, kind, ttl) then
  return name .. '\n' .. next_fence()
end

local position, member
if redis.call('EXISTS', QUEUE) == 1 or not may_enter(owner, kind) then
  local most = tonumber(ARGV[6])
  if most and redis.call('ZCARD', QUEUE) >= most then
    -- Those that may enter do, and those that are gone do not count.
    owner = dispatch(owner)
    forget_silent()
    if redis.call('ZCARD', QUEUE) >= most then channel = '' end
  end
  if channel ~= '' then
    local now = time()
    position = tonumber(ARGV[5]) or next_position(now)
    member = enqueue(QUEUE, digits(position), alone, kind, ttl, channel, name)
    redis.call('PEXPIRE', QUEUE, HOUSEKEEPING)
    note(channel, now, more)
  end
  local granted
  owner, granted = dispatch(owner)
  if granted[name] then
    extend(owner, name, kind, ttl)
    return name .. '\n' .. granted[name]
  end
  if position and not owner and not redis.call('ZSCORE', QUEUE, member) then
    return {name, 'gone'}
  end
  if position or not may_enter(owner, kind) or redis.call('EXISTS', QUEUE) == 1 then
    local left, who = served(owner)
    if position then return {name, 'waiting', digits(position), left, who, crowd(1)} end
    return {name, 'busy', '', left, who, crowd(0)}
  end
end
local fence = next_fence()
hold(owner, name, kind, ttl)
return name .. '\n' .. fence

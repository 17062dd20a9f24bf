-- In which layout the keys of the lock are. One server keeps a counter for all locks,
-- and a call names two keys. In a cluster, and where a server wants to know every key,
-- each lock has a counter of its own, all keys are named, and one more argument says
-- what this node adds to the names of channels, so that a message reaches those
-- alone who listen here.
--
-- KEYS[3..] and the last of ARGV: only if all keys are declared
local AT, count = '', nil
if KEYS[3] then
  local DAY = 86400000 -- ms that a counter outlives its last use
  AT = table.remove(ARGV)
  -- The next number of this lock. The clock is ahead of any number that it had
  -- reached, also of those that were forgotten in a failover, or after a day.
  count = function()
    local now = redis.call('TIME')
    local last = redis.call('GET', KEYS[2]) or 0
    local fence = math.max(last + 1, now[1] * 1000000 + now[2])
    redis.call('SET', KEYS[2], string.format('%.0f', fence), 'PX', DAY)
    return fence
  end
end

-- In which layout the keys of the lock are. One server keeps a counter for all locks,
-- and a call names two keys. In a cluster, and where a server wants to know every key,
-- each lock has a counter of its own, all keys are named, and one more argument says
-- what this node adds to the names of channels, so that a message reaches those
-- alone who listen here.
--
-- KEYS[3..] and the last of ARGV: only if all keys are declared
local AT, count = '', nil
if KEYS[3] then
  local DAY = '86400000' -- ms that a counter outlives its last use; a text, as arguments become
  AT = table.remove(ARGV)
  -- The next number of this lock. The clock is ahead of any number that it had
  -- reached, also of those that were forgotten in a failover, or after a day; and of
  -- the last one, most of the time, so that one write is enough.
  count = function()
    local now = redis.call('TIME')
    local fence = now[1] * 1000000 + now[2]
    local last = redis.call('SET', KEYS[2], string.format('%s%06d', now[1], now[2]), 'PX', DAY, 'GET')
    if last and last + 1 > fence then
      fence = last + 1
      redis.call('SET', KEYS[2], string.format('%.0f', fence), 'PX', DAY)
    end
    return fence
  end
end

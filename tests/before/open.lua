-- Run by every connection before its first acquire: raises the fence counter to
-- the server's clock in microseconds, so that it grows also when the server has
-- lost its data.
--
-- KEYS[1] fence
-- reply   the counter
local now = redis.call('TIME')
local clock = now[1] * 1000000 + now[2]
local fence = tonumber(redis.call('GET', KEYS[1])) or 0
if fence < clock then
  fence = clock
  -- A removal passes when memory is full, and what follows passes with it.
  redis.call('DEL', KEYS[1])
  redis.call('SET', KEYS[1], string.format('%.0f', fence))
end
return string.format('%.0f', fence)

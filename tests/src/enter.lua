-- Enters a section; counts a violation when another one of the key is inside, or when the fence did not grow.
--
-- KEYS  the set of sections inside · the highest fence seen · the list of violations · the count of sections
-- ARGV  the key's name · the fence in decimal
-- reply the section's number
local section = redis.call('INCR', KEYS[4])
local name, fence = ARGV[1], ARGV[2]

if redis.call('SCARD', KEYS[1]) > 0 then
  redis.call('RPUSH', KEYS[3], name .. ': fence ' .. fence .. ' entered while another section was inside')
end
redis.call('SADD', KEYS[1], section)

-- As text, since a Lua number would round a large fence.
local last = redis.call('GET', KEYS[2]) or ''
if #fence > #last or (#fence == #last and fence > last) then
  redis.call('SET', KEYS[2], fence)
else
  redis.call('RPUSH', KEYS[3], name .. ': fence ' .. fence .. ' entered after ' .. last)
end

return section

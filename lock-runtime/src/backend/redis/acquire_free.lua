-- The common case, before anything is made that it does not need: an exclusive
-- lock that is free and that nobody waits for.
local call = redis.call
if not ARGV[4] and call('EXISTS', KEYS[1], KEYS[2]) == 0 then
  local fence = call('INCR', KEYS[4])
  -- A counter that has lost its data is seen to in dispatch.lua.
  if fence >= 1000000000000000 then
    call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
    return ARGV[1] .. '\n' .. string.format('%.0f', fence)
  end
end

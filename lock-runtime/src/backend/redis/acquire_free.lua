-- The common case, before anything is made that it does not need: an exclusive
-- lock that is free and that nobody waits for.
if ARGV[6] == 'x' and redis.call('EXISTS', KEYS[1], KEYS[2]) == 0 then
  local fence = redis.call('INCR', KEYS[4])
  -- A counter that has lost its data is seen to in dispatch.lua.
  if fence >= 1000000000000000 then
    redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
    return {ARGV[1], 'granted', string.format('%.0f', fence)}
  end
end

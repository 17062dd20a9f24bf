-- The common case, before anything is made that it does not need: an exclusive
-- lock that is free and that nobody waits for.
local call = redis.call
if not ARGV[4] and call('EXISTS', KEYS[1], KEYS[1] .. ':q') == 0 then
  local fence = call('INCR', KEYS[2])
  -- A counter that has lost its data is seen to in dispatch.lua.
  if fence >= 1000000000000000 then
    call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
    -- All digits in two parts, which is faster than as one fraction of none.
    return string.format('%s\n%d%09d', ARGV[1], fence / 1000000000, fence % 1000000000)
  end
end

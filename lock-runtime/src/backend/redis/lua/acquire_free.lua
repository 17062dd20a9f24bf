-- The most common case, before any function is made: an exclusive lock that is free and
-- that nobody waits for. There a position says nothing.
local call, kind, owner, queue = redis.call, ARGV[4], KEYS[1], KEYS[1] .. ':q'
local keys
if not kind or kind == 'x+' or kind == 'x-' or kind == 'x' and ARGV[5] then
  keys = call('EXISTS', owner, queue)
  if keys == 0 then
    local fence = count and count() or call('INCR', KEYS[2])
    -- A counter that has lost its data is seen to in functions.lua.
    if fence >= LEAST_FENCE then
      call('SET', owner, ARGV[1], 'PX', ARGV[2])
      -- All digits in two parts, which is faster than as one fraction of none. Without rounding: Lua 5.4, which some servers
      -- have, formats no fraction as an integer.
      local low = fence % 1000000000
      return string.format('%s\n%d%09d', ARGV[1], (fence - low) / 1000000000, low)
    end
  end
end


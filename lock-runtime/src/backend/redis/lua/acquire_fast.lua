-- The common cases, before anything is made that they do not need: an exclusive
-- lock that is free and that nobody waits for, and one that somebody else holds.
local call = redis.call
local kind = ARGV[4]
if not kind or not ARGV[5] and (kind == 'x+' or kind == 'x-') then
  local owner, queue, seen, channel = KEYS[1], KEYS[1] .. ':q', KEYS[1] .. ':s', ARGV[3]
  local keys = call('EXISTS', owner, queue)
  if keys == 0 then
    local fence = count and count() or call('INCR', KEYS[2])
    -- A counter that has lost its data is seen to in dispatch.lua.
    if fence >= LEAST_FENCE then
      call('SET', owner, ARGV[1], 'PX', ARGV[2])
      -- All digits in two parts, which is faster than as one fraction of none.
      return string.format('%s\n%d%09d', ARGV[1], fence / 1000000000, fence % 1000000000)
    end
  elseif channel ~= '' then
    local holder = call('GET', owner)
    if holder and holder ~= ARGV[1] and string.byte(holder) ~= 42 then -- not '*'
      local now = call('TIME')
      local place = string.format('%d%06d', now[1], now[2])
      -- The place of a clock that has gone back is found in dispatch.lua.
      if keys == 1 or call('ZCOUNT', queue, place, '+inf') == 0 then
        call('ZADD', queue, 'NX', kind == 'x-' and place .. ALONE or place, 'x:' .. ARGV[2] .. ':' .. channel .. '\n' .. ARGV[1])
        call('ZADD', seen, kind == 'x+' and place .. MORE or place, channel)
        -- Now and then is enough, and costs less.
        if now[2] % 64 == 0 then
          call('ZREMRANGEBYSCORE', seen, '0', string.format('(%.0f', place - SILENCE))
        end
        call('PEXPIRE', queue, HOUSEKEEPING)
        call('PEXPIRE', seen, HOUSEKEEPING)
        return {ARGV[1], 'waiting', place, call('PTTL', owner), holder, call('ZCARD', queue) - 1}
      end
    end
  end
end
return general()

-- The next most common case: an exclusive lock that somebody else holds, and a newcomer
-- without a position.
local channel, seen = ARGV[3], owner .. ':s'
local holder = keys and keys > 0 and channel ~= '' and not ARGV[5] and call('GET', owner)
if holder and holder ~= ARGV[1] and string.byte(holder) ~= 42 then -- not '*'
  local now = call('TIME')
  local position = string.format('%d%06d', now[1], now[2])
  -- The position of a clock that has gone back is found in functions.lua.
  if keys == 1 or call('ZCOUNT', queue, position, '+inf') == 0 then
    enqueue(queue, position, kind == 'x-', 'x', ARGV[2], channel, ARGV[1])
    call('ZADD', seen, mark(position, kind == 'x+'), channel)
    -- Now and then is enough, and costs less.
    if now[2] % 64 == 0 then
      call('ZREMRANGEBYSCORE', seen, '0', string.format('(%.0f', position - SILENCE))
    end
    call('PEXPIRE', queue, HOUSEKEEPING)
    call('PEXPIRE', seen, HOUSEKEEPING)
    return {ARGV[1], 'waiting', position, call('PTTL', owner), holder, call('ZCARD', queue) - 1}
  end
end


-- Puts a member at its position, unless it is in the queue already. Returns the member.
local function enqueue(queue, position, alone, kind, ttl, channel, name)
  local member = kind .. ':' .. ttl .. ':' .. channel .. '\n' .. name
  redis.call('ZADD', queue, 'NX', mark(position, alone), member)
  return member
end


-- Puts a member in its place, unless it is in the queue already. Returns the member.
local function enqueue(queue, place, alone, kind, ttl, channel, name)
  local member = kind .. ':' .. ttl .. ':' .. channel .. '\n' .. name
  redis.call('ZADD', queue, 'NX', mark(place, alone), member)
  return member
end


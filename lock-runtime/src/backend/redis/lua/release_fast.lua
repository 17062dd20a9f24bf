-- The common cases, before anything is made that they do not need: a lock of our
-- own that nobody else holds, and that nobody waits for or somebody who is there.
local call = redis.call
local owner = call('GET', KEYS[1])
if ARGV[2] or owner ~= ARGV[1] then return general(owner) end

local queue, seen = KEYS[1] .. ':q', KEYS[1] .. ':s'
local waiting = call('ZCARD', queue)
if waiting == 0 then
  call('DEL', KEYS[1])
  return owner
end

-- A removal comes first, as in dispatch.lua, which goes on with this head where
-- it is not as simple as that.
local popped = call('ZPOPMIN', queue)
local head, place = popped[1], popped[2]
local ttl, channel, name = string.match(head, '^x:([1-9]%d*):([^\n]+)\n(.+)$')
local now = ttl and call('TIME')
local last = now and call('ZSCORE', seen, channel)
if not last or now[1] * 1000000 + now[2] - last > SILENCE then
  return general(owner, head, place)
end
local fence = count and count() or call('INCR', KEYS[2])
if fence < LEAST_FENCE then return general(owner, head, place) end

local more, tokens = 0, ''
if waiting > 1 and last % 1 ~= 0 and place % 1 == 0 then
  more, tokens = followers(queue, head, name)
  if more > 0 then call('INCRBY', KEYS[2], more) end
end

fence = string.format('%d%09d', fence / 1000000000, fence % 1000000000)
call('SET', KEYS[1], name, 'PX', math.min(ttl, CLAIM_TTL))
if waiting == more + 1 then call('DEL', seen) end
if call('PUBLISH', channel .. AT, grant(fence, KEYS[1], name, tokens)) == 0 then
  return general(owner, nil, nil, channel)
end
return owner

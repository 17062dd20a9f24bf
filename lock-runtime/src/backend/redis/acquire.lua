-- Takes a free lock nobody waits for, or joins the line. Sent again with the
-- same token it extends instead of finding itself in the way.
--
-- ARGV[1] token  [2] ttl in ms  [3] channel  [4] '1' to wait, '0' to try once
-- ARGV[5] the place of an earlier token of the same waiter, or ''
-- reply   {token, 'granted', fence}
--         {token, 'waiting', place, ms left of the owner, owner}
--         {token, 'busy', '', ms left of the owner, owner}
--         {token, 'gone'}: our own channel has no listener
local token, ttl, channel = ARGV[1], ARGV[2], ARGV[3]
local owner = redis.call('GET', KEYS[1])
if owner == token then
  redis.call('PEXPIRE', KEYS[1], ttl)
  return {token, 'granted', next_fence()}
end

local place
if owner or redis.call('EXISTS', KEYS[2]) == 1 then
  if ARGV[4] == '1' then
    place = tonumber(ARGV[5]) or time()
    enqueue(token .. ':x:' .. ttl .. ':' .. channel, place, channel)
  end
  dispatch()
  owner = redis.call('GET', KEYS[1])
end

if owner == token then
  redis.call('PEXPIRE', KEYS[1], ttl)
  return {token, 'granted', granted_fence}
elseif owner then
  local left = redis.call('PTTL', KEYS[1])
  if place then return {token, 'waiting', digits(place), left, owner} end
  return {token, 'busy', '', left, owner}
elseif place then
  return {token, 'gone'}
end
local fence = next_fence()
redis.call('SET', KEYS[1], token, 'PX', ttl)
return {token, 'granted', fence}

-- Where do these stand? Also says that their connection lives, and dispatches
-- the head of the line where the lock has become free by expiry. Never joins:
-- a token that is queued again after a late grant would make two holders.
--
-- ARGV[1] channel  [2..] members, as they stand in the queue
-- reply   {ms left of the owner, owner or '', then for each member
--          {token, 'granted', fence} | {token, 'waiting'} | {token, 'gone'}}
if redis.call('PEXPIRE', KEYS[2], HOUSEKEEPING) == 1 then
  redis.call('HSET', KEYS[3], ARGV[1], digits(time()))
  redis.call('PEXPIRE', KEYS[3], HOUSEKEEPING)
end
dispatch()

local owner = redis.call('GET', KEYS[1])
local reply = {redis.call('PTTL', KEYS[1]), owner or ''}
for i = 2, #ARGV do
  local token, ttl = string.match(ARGV[i], '^(%x+):%a:(%d+):')
  local answer
  if owner == token then
    redis.call('PEXPIRE', KEYS[1], ttl)
    local fence = granted_token == token and granted_fence or next_fence()
    answer = {token, 'granted', fence}
  elseif redis.call('ZSCORE', KEYS[2], ARGV[i]) then
    answer = {token, 'waiting'}
  else
    answer = {token, 'gone'}
  end
  reply[#reply + 1] = answer
end
return reply

-- Where do these stand? Also says that their connection lives, and dispatches
-- the head of the queue where the lock has become free by expiry. Never joins:
-- a token that is queued again after a late grant would make two holders.
--
-- ARGV[1] channel  [2..] members, as they are written in the queue
-- reply   {ms left of a holder, its name or '', then for each member
--          {name, 'granted', fence} | {name, 'waiting'} | {name, 'gone'}, then how
--          many others than one wait, ms for which the first of all has waited}
if redis.call('PEXPIRE', QUEUE, HOUSEKEEPING) == 1 then
  note(ARGV[1], time(), has_more(ARGV[1]))
end
local owner, granted, chained = dispatch(redis.call('GET', OWNER))
local left, who = served(owner)
local reply = {left, who}
for i = 2, #ARGV do
  local kind, ttl, name = string.match(ARGV[i], '^(%a[%d/]*):(%d+):[^\n]*\n(.+)$')
  local answer
  if owner and extend(owner, name, kind, ttl) then
    answer = {name, 'granted', granted[name] or next_fence()}
  elseif redis.call('ZSCORE', QUEUE, ARGV[i])
    or string.find(chained, '\n' .. string.sub(name, 1, 32), 1, true) then
    answer = {name, 'waiting'}
  else
    answer = {name, 'gone'}
  end
  reply[#reply + 1] = answer
end
local waiters, longest = crowd(1)
reply[#reply + 1] = waiters
reply[#reply + 1] = longest
return reply

-- Takes over a lock that a ticket keeps closed, whoever waits for it. Sent again under the
-- same name it extends instead of finding the ticket gone.
--
-- ARGV[1] name  [2] ttl in ms  [3] kind  [4] what the name of the ticket begins with
-- reply   name, a new line, fence: it is granted
--         {name, 'no ticket'}
local name, ttl, kind, ticket = ARGV[1], ARGV[2], ARGV[3], ARGV[4] .. ' '
local owner = redis.call('GET', OWNER)
if owner and extend(owner, name, kind, ttl) then
  return name .. '\n' .. next_fence()
end

local function is_issued(holder)
  return string.sub(holder, 1, #ticket) == ticket
end

if owner and kind == 'x' and is_issued(owner) then
  -- As in a release with a cooldown.
  redis.call('PEXPIRE', OWNER, ttl)
  local fence = next_fence()
  redis.call('SET', OWNER, name, 'PX', ttl)
  return name .. '\n' .. fence
elseif kind ~= 'x' and shared(owner) == kind then
  local now = millis()
  local holders = redis.call('ZRANGE', HOLDERS, '(' .. digits(now), '+inf', 'BYSCORE')
  for _, holder in ipairs(holders) do
    if is_issued(holder) then
      redis.call('ZREM', HOLDERS, holder)
      local fence = next_fence()
      redis.call('ZADD', HOLDERS, digits(now + ttl), name)
      settle(now)
      return name .. '\n' .. fence
    end
  end
end
return {name, 'no ticket'}

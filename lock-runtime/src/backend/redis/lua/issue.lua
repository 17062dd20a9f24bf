-- Lets a ticket take the place of a holder: the lock stays closed for its time under a name
-- that only an adopter knows, so that neither a late renewal nor a release finds it.
--
-- ARGV[1] name  [2] the name of the ticket  [3] its time in ms
-- reply   name, behind a '-' where the lock was not ours
local name, ticket, time = ARGV[1], ARGV[2], ARGV[3]
local owner = redis.call('GET', OWNER)
if owner == name then
  -- As in a release with a cooldown.
  redis.call('PEXPIRE', OWNER, time)
  redis.call('SET', OWNER, ticket, 'PX', time)
  return name
elseif shared(owner) then
  local now = millis()
  local ends = tonumber(redis.call('ZSCORE', HOLDERS, name) or 0)
  if now < ends then
    redis.call('ZREM', HOLDERS, name)
    redis.call('ZADD', HOLDERS, digits(now + time), ticket)
    settle(now)
    return name
  end
end
-- An earlier call, whose answer was lost, may have written it.
local issued = owner == ticket or shared(owner) and redis.call('ZSCORE', HOLDERS, ticket)
return (issued and '' or '-') .. name

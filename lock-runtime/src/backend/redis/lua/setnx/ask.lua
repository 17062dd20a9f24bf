-- Takes the lock for the first of these, if it is free.
--
-- ARGV[1] channel  [2..] members, as in the queue of other stores
-- reply   {ms left of the holder, its name or value, then for each member
--          {name, 'granted', fence} | {name, 'waiting'}, then 0, 0}
local reply = {0, ''}
for i = 2, #ARGV do
  local ttl, name = string.match(ARGV[i], '^%a:(%d+):[^\n]*\n(.+)$')
  local granted, left, holder = enter(name, ttl)
  if not granted and not left then return odd(holder) end
  if i == 2 and not granted then reply[1], reply[2] = left, holder end
  reply[i + 1] = granted and {name, 'granted', granted} or {name, 'waiting'}
end
reply[#reply + 1] = 0
reply[#reply + 1] = 0
return reply

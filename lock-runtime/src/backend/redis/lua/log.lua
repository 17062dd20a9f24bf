-- The history of a lock, and who holds it at the moment. Writes nothing.
--
-- reply   {{the names of those who hold it}, then the entries, the newest first, as in history.lua}
local owner = redis.call('GET', OWNER)
local holders = {owner or nil}
if shared(owner) then
  holders = redis.call('ZRANGE', HOLDERS, '(' .. digits(millis()), '+inf', 'BYSCORE')
end
local reply = redis.call('LRANGE', OWNER .. ':l', 0, -1)
table.insert(reply, 1, holders)
return reply

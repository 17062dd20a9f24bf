-- Revokes the lock and hands it over; the holders are notified.
--
-- ARGV[1] the channel that every connection listens to
-- reply   how many held it
sweep(millis())
local holders = {}
for _, holder in ipairs(redis.call('ZRANGE', HOLDERS, 0, -1)) do
  if string.byte(holder) ~= 43 then holders[#holders + 1] = holder end -- '+'
end
local owner = redis.call('GET', OWNER)
if owner and not shared(owner) then holders = {owner} end
if not owner then holders = {} end
redis.call('DEL', OWNER, HOLDERS)
for _, name in ipairs(holders) do
  redis.call('PUBLISH', ARGV[1] .. AT, 'revoked\n' .. name)
  if not string.find(name, '^[-=]') then log('revoked', digits(time()), name) end
end
dispatch(nil)
return #holders

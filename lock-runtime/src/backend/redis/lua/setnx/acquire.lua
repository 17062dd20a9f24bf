-- Takes the lock, or says who has it.
--
-- ARGV[1] name  [2] ttl in ms  [3] channel, or '' to try once
-- reply   name, a new line, fence: it is granted
--         {name, 'waiting', time, ms left of the holder, its name or value, 0, 0}
--         {name, 'busy', '', and the same from there}
--         {name, 'taken', ms until it is confirmed that nobody else has taken it over}
local name, channel = ARGV[1], ARGV[3]
local granted, left, holder = enter(name, ARGV[2])
if granted then return name .. '\n' .. granted end
if not left then return odd(holder) end
if channel == '' and holder == '' then return {name, 'taken', math.ceil(left)} end
if channel == '' then return {name, 'busy', '', left, holder, 0, 0} end
return {name, 'waiting', fence(), left, holder, 0, 0}

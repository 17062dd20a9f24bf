-- The function `release` is the script of that name.
local reply = release(KEYS, ARGV)
if reply == ARGV[1] then log('released', digits(time()), reply) end
return reply

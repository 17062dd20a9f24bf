-- The function `issue` is the script of that name. The holder has let go of the lock.
local reply = issue(KEYS, ARGV)
if reply == ARGV[1] then log('released', digits(time()), reply) end
return reply

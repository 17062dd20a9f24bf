-- The function `adopt` is the script of that name.
local reply = adopt(KEYS, ARGV)
if type(reply) == 'string' then
  log('grant', digits(time()), ARGV[3], string.match(reply, '\n(%d+)$'), ARGV[1])
end
return reply

-- Tries each command that these scripts use, on keys that nobody else has.
--
-- KEYS[1] a name that nobody has
-- ARGV[1] the channel of the connection
-- reply   for each command that was refused: the command, why
local one, note = KEYS[1], KEYS[1] .. ':note'
try('TIME')
try('DEL', one, note)
try('SET', one, '1', 'PX', '1000')
try('GET', one)
try('HSET', note, 'a', '1')
try('PEXPIRE', note, '1000')
try('PTTL', note)
try('HMGET', note, 'a')
try('HDEL', note, 'a')
try('PUBLISH', ARGV[1], '')
try('DEL', one, note)
return refused

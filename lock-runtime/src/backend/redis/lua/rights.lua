-- Tries each command that the scripts use, on keys that nobody else has, and leaves
-- nothing behind.
--
-- KEYS[1] a name that nobody has
-- ARGV[1] the channel of the connection
-- reply   for each command that was refused: the command, why
local one, many = KEYS[1], KEYS[1] .. ':q'
try('TIME')
try('DEL', one, many)
try('SET', one, '1', 'PX', '1000')
try('GET', one)
try('EXISTS', one)
try('PEXPIRE', one, '1000')
try('PTTL', one)
try('INCR', one)
try('INCRBY', one, '1')
try('ZADD', many, '1', 'a')
try('PEXPIRE', many, '1000')
try('ZSCORE', many, 'a')
try('ZRANGE', many, '0', '0')
try('ZCARD', many)
try('ZCOUNT', many, '-inf', '+inf')
try('ZREMRANGEBYSCORE', many, '-inf', '0')
try('ZREM', many, 'a')
try('ZPOPMIN', many)
try('PUBLISH', ARGV[1], '')
try('SCAN', '0', 'MATCH', one, 'COUNT', '1')
try('DEL', one, many)
return refused

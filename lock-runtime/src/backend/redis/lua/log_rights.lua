-- What a manager needs besides that keeps a history.
try('LPUSH', KEYS[1] .. ':l', '')
try('LTRIM', KEYS[1] .. ':l', '0', '0')
try('PEXPIRE', KEYS[1] .. ':l', '1000')
try('LPOP', KEYS[1] .. ':l')
try('LRANGE', KEYS[1] .. ':l', '0', '-1')

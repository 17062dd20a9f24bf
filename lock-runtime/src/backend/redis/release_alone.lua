-- The common case, before anything is made that it does not need: a lock of our
-- own that nobody else holds or waits for.
local call = redis.call
if not ARGV[2] and call('GET', KEYS[1]) == ARGV[1] and call('EXISTS', KEYS[2]) == 0 then
  call('DEL', KEYS[1])
  return ARGV[1]
end

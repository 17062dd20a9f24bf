-- The common case, before anything is made that it does not need: a lock of our
-- own that nobody else holds or waits for.
if ARGV[2] == '' and ARGV[3] == '0' and redis.call('GET', KEYS[1]) == ARGV[1]
  and redis.call('EXISTS', KEYS[2]) == 0 then
  redis.call('DEL', KEYS[1])
  return {ARGV[1], 1}
end

-- The common case, before anything is made that it does not need: a lock of our
-- own that nobody else holds or waits for.
local owner
if not ARGV[2] then
  owner = redis.call('GET', KEYS[1])
  if owner == ARGV[1] and redis.call('EXISTS', KEYS[1] .. ':q') == 0 then
    redis.call('DEL', KEYS[1])
    return owner
  end
end

-- The most common case, before any function is made: a lock of our own that nobody else
-- holds and that nobody waits for, not even the one that leaves the queue.
local call, queue = redis.call, KEYS[1] .. ':q'
local owner = call('GET', KEYS[1])
local waiting = not ARGV[3] and owner == ARGV[1] and call('ZCARD', queue)
if waiting == 0 then
  call('DEL', KEYS[1])
  return owner
end
if ARGV[2] then waiting = nil end


-- Writes a later time if the lock is still ours.
--
-- ARGV[1] name  [2] ttl in ms  [3] kind, which is always x
-- reply   name, behind a '-' where it was not ours
local name, ttl = ARGV[1], ARGV[2]
local value, note = look()
if not is_held_by(name, value, note) then
  if note.name == name then redis.call('DEL', NOTE) end
  return '-' .. name
end
-- This passes when memory is full, and what follows passes with it.
redis.call('PEXPIRE', NOTE, ttl)
hold(name, ttl)
return name

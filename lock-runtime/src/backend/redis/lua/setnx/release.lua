-- Lets go of the lock if it is still ours.
--
-- ARGV[1] name  [2] member, which nobody keeps
-- reply   name, behind a '-' where it was not ours
local name = ARGV[1]
local value, note = look()
if note.name == name then redis.call('DEL', NOTE) end
if not is_held_by(name, value, note) then return '-' .. name end
redis.call('DEL', LOCK)
return name

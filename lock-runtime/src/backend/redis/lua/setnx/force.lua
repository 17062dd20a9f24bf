-- Revokes the lock; a holder of ours is notified.
--
-- ARGV[1] the channel that every connection listens to
-- reply   how many held it
local value, note = look()
redis.call('DEL', LOCK, NOTE)
if note.name then redis.call('PUBLISH', ARGV[1], 'revoked\n' .. note.name) end
if note.name or value and (ends(value) or math.huge) >= time() then return 1 end
return 0

-- Who holds the lock. Writes nothing, and knows of no waiters.
--
-- reply   {0, {}}, and of a holder: its name or value, ms left or -1
local value, note = look()
if note.name then return {0, {}, note.name, redis.call('PTTL', NOTE)} end
if not value then return {0, {}} end
local over = ends(value)
local left = over and over - time() or -1
if over and left < 0 then return {0, {}} end
return {0, {}, value, left}

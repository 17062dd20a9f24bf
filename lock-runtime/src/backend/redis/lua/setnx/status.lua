-- Who holds the lock. Writes nothing, and knows of no waiters.
--
-- reply   {0, {}}, and of a holder: its name or value, ms left or -1, and of one of ours its fence
--         and the us since its grant, or else ''
local value, note = look()
if note.name then
  local fence = redis.call('HMGET', NOTE, 'fence')[1]
  local granted = fence and string.format('%s %.0f', fence, math.max(0, time() * 1000 - fence)) or ''
  return {0, {}, note.name, redis.call('PTTL', NOTE), granted}
end
if not value then return {0, {}} end
local over = ends(value)
local left = over and over - time() or -1
if over and left < 0 then return {0, {}} end
return {0, {}, value, left, ''}

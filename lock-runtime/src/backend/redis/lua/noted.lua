-- What a renewal has noted of a holder: its fence, and for how many us it has held the lock;
-- or ''. A missing right hides the note and nothing else.
local function noted(owner, name, now)
  local note = redis.pcall('GET', owner .. ':n:' .. string.sub(name, 1, 32))
  local fence, since = string.match(type(note) == 'string' and note or '', '^(%d+) (%d+)$')
  return fence and fence .. ' ' .. string.format('%.0f', math.max(0, now - since)) or ''
end


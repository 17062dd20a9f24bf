-- Notes the grant of a holder that renews its lease, for those who look at the lock while the
-- holder does not answer. A note lasts as long as the lease.
--
-- :n: and a token   fence, server time in us at the grant
local function note_grant(owner, name, ttl, fence, held)
  local now = redis.call('TIME')
  local since = string.format('%.0f', now[1] * 1000000 + now[2] - held)
  -- Nobody loses a lock by a missing right to its note.
  redis.pcall('SET', owner .. ':n:' .. string.sub(name, 1, 32), fence .. ' ' .. since, 'PX', ttl)
end

-- Keeps the history of a lock: notes each grant, and each release and revocation. What is
-- here takes the place of functions of the files before it, which do the work.
--
-- :l log: a list of entries, the newest first, which end in a name:
--         'grant', server time in us, kind, fence, name; once more with another fence where
--                  a holder has asked again
--         'released' or 'revoked', server time in us, name
--
-- KEEP    how many entries to keep, or nil: goes on with a log that somebody else keeps
local LOG = OWNER .. ':l'
local FORGET = '2764800000' -- ms that a log outlives its last entry: 32 days

local log = function() end

if KEEP or redis.call('EXISTS', LOG) == 1 then
  log = function(...)
    local entry = table.concat({...}, ' ')
    -- Nobody is kept from revoking a lock by a missing right to its log.
    if not KEEP then return redis.pcall('LPUSHX', LOG, entry) end
    redis.call('LPUSH', LOG, entry)
    redis.call('LTRIM', LOG, '0', digits(KEEP - 1))
    redis.call('PEXPIRE', LOG, FORGET)
  end

  local number, enter, stay, deliver = next_fence, hold, extend, push
  local fence, staying

  next_fence = function()
    fence = number()
    if staying then log('grant', digits(time()), staying.kind, fence, staying.name) end
    staying = nil
    return fence
  end

  hold = function(owner, name, kind, ttl)
    enter(owner, name, kind, ttl)
    log('grant', digits(time()), kind, fence, name)
  end

  extend = function(owner, name, kind, ttl)
    local stays = stay(owner, name, kind, ttl)
    staying = stays and {name = name, kind = kind} or nil
    return stays
  end

  -- A grant that nobody hears of is undone.
  push = function(...)
    local is_heard = deliver(...)
    if not is_heard then redis.pcall('LPOP', LOG) end
    return is_heard
  end

  -- Each is granted the lock alone, so that the server sees each grant.
  followers = function() return '', 0 end
end


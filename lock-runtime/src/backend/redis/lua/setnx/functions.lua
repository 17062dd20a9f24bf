-- The part that the scripts of the setnx protocol share. Other clients speak it with
-- SETNX, GET, GETSET and DEL, and tell from the time alone whether the lock is held. A
-- note beside the lock says whether the holder is one of ours; its ttl is the lease.
--
-- KEYS[1] lock: a string, when the time of its holder ends
-- KEYS[2] note: a hash about a holder of ours: name; value, as it wrote it; fence; and taken,
--         when it took over an expired lock, until that is confirmed
--
-- The last two of ARGV: how times are written (ms, s or float), and how many ms lie
-- between what is written and the end.
local OFFSET = tonumber(table.remove(ARGV))
local UNIT = table.remove(ARGV)
local LOCK, NOTE = KEYS[1], KEYS[2]
local CONFIRM = 20   -- ms in which another client may write its time over ours
local LINGER = 60000 -- ms that the lock's key outlives the time in it

-- The server's time in ms.
local function time()
  local now = redis.call('TIME')
  return now[1] * 1000 + now[2] / 1000
end

-- Grows with the clock, which is also where the counter of other stores begins.
local function fence()
  local now = redis.call('TIME')
  return string.format('%d%06d', now[1], now[2])
end

-- What is written for an end; nobody reads it as an earlier one.
local function written(ends)
  local start = math.ceil(ends - OFFSET)
  if UNIT == 'ms' then return string.format('%.0f', start) end
  if UNIT == 'float' then return string.format('%.3f', start / 1000) end
  return string.format('%.0f', math.ceil(start / 1000))
end

-- When nobody takes what is written for a time to come any more; nothing if it is not
-- a time as it should be written. In 1973 there were 10^11 ms.
local function ends(value)
  local start = tonumber(value)
  if not start or (UNIT == 'ms') ~= (start >= 100000000000) then return nil end
  if UNIT == 'ms' then return start + OFFSET end
  if UNIT == 'float' then return start * 1000 + OFFSET end
  return (math.floor(start) + 1) * 1000 + OFFSET
end

local function odd(value)
  return redis.error_reply('WRONGTYPE the lock is held with the value ' .. value
    .. ', which is no time in the unit that the URL names with `stamp`')
end

-- What is written, and who of ours holds the lock or has held it.
local function look()
  local note = redis.call('HMGET', NOTE, 'name', 'value', 'taken')
  return redis.call('GET', LOCK), {name = note[1], value = note[2], taken = note[3]}
end

-- Whether the lock is this one's. Who wanted to take it over at the same time, and came
-- too late, has written its own time over ours.
local function is_held_by(name, value, note)
  return note.name == name and value and (value == note.value or note.taken)
end

local function hold(name, ttl, taken, fence)
  local now = time()
  local value = written(now + ttl)
  redis.call('SET', LOCK, value, 'PX', string.format('%.0f', ttl + LINGER))
  if fence then
    redis.call('HSET', NOTE, 'name', name, 'value', value, 'fence', fence)
  else
    redis.call('HSET', NOTE, 'name', name, 'value', value)
  end
  if taken then
    redis.call('HSET', NOTE, 'taken', string.format('%.0f', now))
  else
    redis.call('HDEL', NOTE, 'taken')
  end
  redis.call('PEXPIRE', NOTE, ttl)
end

-- Holds the lock from now on, under the fence that is returned.
local function grant(name, ttl)
  local granted = fence()
  hold(name, ttl, false, granted)
  return granted
end

-- Takes the lock if it is free. Returns the fence of a grant, or nothing, how many ms
-- are left of the holder, and who that is; where the value is odd, only that. Who takes over
-- an expired lock has it once that is confirmed: nobody is its holder until then.
local function enter(name, ttl)
  local value, note = look()
  if is_held_by(name, value, note) then
    local wait = note.taken and note.taken + CONFIRM - time() or 0
    if wait > 0 then return nil, wait, '' end
    return grant(name, ttl)
  end
  if note.name then return nil, redis.call('PTTL', NOTE), note.name end
  if not value then return grant(name, ttl) end
  local over = ends(value)
  if not over then return nil, nil, value end
  local left = over - time()
  if left >= 0 then return nil, left, value end
  hold(name, ttl, true)
  return nil, CONFIRM, ''
end

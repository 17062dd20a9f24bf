-- The part that acquire, ask, leave and release share: numbers acquisitions and
-- grants a free lock to the first in line.
--
-- KEYS[1] owner: a string with a ttl, the token of the holder
-- KEYS[2] queue: a sorted set by place (server time in microseconds), members
--         token:kind:ttl:channel
-- KEYS[3] seen:  a hash, channel of a connection -> when it last asked
-- KEYS[4] fence: the counter of acquisitions

local CLAIM_TTL = 3000       -- ms that a granted waiter has to claim its grant
local SILENCE = 3000000      -- us after which a connection counts as gone
local HOUSEKEEPING = 60000   -- ms that the queue outlives its last question

local granted_token, granted_fence

local function time()
  local now = redis.call('TIME')
  return now[1] * 1000000 + now[2]
end

-- All digits: Lua would print large numbers in scientific notation.
local function digits(number)
  return string.format('%.0f', number)
end

-- A counter that is far below the server's clock has lost its data since the
-- connections raised it; the clock is ahead of any number it had reached.
local function next_fence()
  local fence = redis.call('INCR', KEYS[4])
  if fence < 1000000000000000 then
    fence = time()
    redis.call('SET', KEYS[4], digits(fence))
  end
  return digits(fence)
end

local function enqueue(member, place, channel)
  redis.call('ZADD', KEYS[2], 'NX', digits(place), member)
  redis.call('HSET', KEYS[3], channel, digits(time()))
  redis.call('PEXPIRE', KEYS[2], HOUSEKEEPING)
  redis.call('PEXPIRE', KEYS[3], HOUSEKEEPING)
end

-- Who was seen does not matter once nobody is in line.
local function tidy()
  if redis.call('EXISTS', KEYS[2]) == 0 then redis.call('DEL', KEYS[3]) end
end

-- The order of the writes matters: removals pass when memory is full, and what
-- follows a write in the same script passes with it.
local function dispatch()
  if redis.call('EXISTS', KEYS[1]) == 1 then return end
  local now
  local gone = {}
  for _ = 1, 1000 do
    local head = redis.call('ZPOPMIN', KEYS[2])[1]
    if not head then break end
    local token, ttl, channel = string.match(head, '^(%x+):%a:(%d+):(.+)$')
    now = now or time()
    if not gone[channel] then
      local seen = redis.call('HGET', KEYS[3], channel)
      if not seen or now - seen > SILENCE then gone[channel] = true end
    end
    if not gone[channel] then
      local fence = next_fence()
      redis.call('SET', KEYS[1], token, 'PX', math.min(ttl, CLAIM_TTL))
      if redis.call('PUBLISH', channel, token .. ':' .. fence .. ':' .. KEYS[1]) > 0 then
        granted_token, granted_fence = token, fence
        break
      end
      redis.call('DEL', KEYS[1])
      gone[channel] = true
    end
  end
  if now then tidy() end
end

-- The part that the scripts share: numbers acquisitions, keeps the holders of a
-- shared lock, and grants the lock to as many at the head of the queue as may
-- hold it together.
--
-- KEYS[1] owner:   a string with a ttl; the name of the holder, or '*' and the
--                  kind in which the lock is shared
-- KEYS[2] fence:   the counter of acquisitions
--
-- and, named after the owner, which on one server costs less than naming them in
-- every call as KEYS[3], [4] and [5]:
--
-- :q queue:   a sorted set by position (server time in microseconds), members
--             kind:ttl:channel, a new line, name; half a microsecond more where the
--             member is granted the lock alone
-- :s seen:    a sorted set, the channels of connections by when they last asked; half a
--             microsecond later where several of a connection wait. Below 0, by how much
--             positions are ahead of a clock that has gone back
-- :h holders: a sorted set, the names of those who share the lock by the ends of
--             their leases (server time in milliseconds)
--
-- A name is a token, who has it and for which function. A kind is x (exclusive),
-- r (readers) or p and the number of permits; behind that a slash and how many of them one
-- acquisition takes, if it takes several. It is among the holders once for each then: under
-- its name, and under '+2 ' and its name, '+3 ' and its name, and so on.

local OWNER, FENCE = KEYS[1], KEYS[2]
local QUEUE, SEEN, HOLDERS = OWNER .. ':q', OWNER .. ':s', OWNER .. ':h'

local function time()
  local now = redis.call('TIME')
  return now[1] * 1000000 + now[2]
end

-- The ends of leases are rounded up.
local function millis()
  return math.ceil(time() / 1000)
end

-- All digits: Lua would print large numbers in scientific notation.
local function digits(number)
  return string.format('%.0f', number)
end

-- A counter that is far below the server's clock has lost its data since the
-- connections raised it; the clock is ahead of any number it had reached.
local function next_fence()
  local fence = count and count() or redis.call('INCR', FENCE)
  if fence < LEAST_FENCE then
    fence = time()
    redis.call('SET', FENCE, digits(fence))
  end
  return digits(fence)
end

-- Whether a connection counts as gone.
local function is_silent(channel, now)
  local seen = redis.call('ZSCORE', SEEN, channel)
  return not seen or now - seen > SILENCE
end

-- Whether more of a connection wait, as it said when one of them last joined.
local function has_more(channel)
  return is_marked(redis.call('ZSCORE', SEEN, channel) or 0)
end

-- Notes that a connection lives, and forgets those that are silent. A connection that
-- was seen before the clock went back counts as seen now, since it may be gone.
local function note(channel, now, more)
  redis.call('ZADD', SEEN, mark(digits(now), more), channel)
  local later = redis.call('ZRANGE', SEEN, digits(now + 1), '+inf', 'BYSCORE', 'WITHSCORES')
  for i = 1, #later, 2 do
    redis.call('ZADD', SEEN, mark(digits(now), is_marked(later[i + 1])), later[i])
  end
  redis.call('ZREMRANGEBYSCORE', SEEN, '0', '(' .. digits(now - SILENCE))
  redis.call('PEXPIRE', SEEN, HOUSEKEEPING)
end

-- The position of a newcomer: behind everybody, also where the clock has gone back.
-- Positions stay as far apart as the members joined, since SEEN keeps by how much the clock
-- is behind them, as the negative score of ''. The first member after such a jump may have
-- joined long after the last one before it, so that their positions are a window apart.
local function next_position(now)
  if redis.call('ZCOUNT', QUEUE, digits(now), '+inf') == 0 then return now end
  local last = math.floor(redis.call('ZRANGE', QUEUE, -1, -1, 'WITHSCORES')[2])
  if last - now < WINDOW then return last + 1 end
  local position = now - (redis.call('ZSCORE', SEEN, '') or 0)
  if position <= last then
    position = last + WINDOW + 1
    redis.call('ZADD', SEEN, digits(now - position), '')
  end
  return position
end

-- Without waiters the connections that were seen do not matter.
local function tidy()
  if redis.call('EXISTS', QUEUE) == 0 then redis.call('DEL', SEEN) end
end

-- A shared lock lives as long as the longest lease in it.
local function settle(now)
  local last = redis.call('ZRANGE', HOLDERS, -1, -1, 'WITHSCORES')[2]
  if last then
    redis.call('PEXPIRE', OWNER, digits(last - now))
    redis.call('PEXPIRE', HOLDERS, digits(last - now))
  else
    redis.call('DEL', OWNER)
  end
end

-- The kind in which the lock is shared, if it is. Without holders, a value that
-- says so is a foreign client's, and closes the lock as any other does.
local function shared(owner)
  local kind = owner and string.match(owner, '^%*(%a%d*)$')
  return kind and redis.call('EXISTS', HOLDERS) == 1 and kind
end

-- A kind without how many of its permits are taken, and that number.
local function taken_of(kind)
  local base, take = string.match(kind, '^(p%d+)/(%d+)$')
  return base or kind, tonumber(take or 1)
end

-- The name under which a holder of several permits has the one of this number.
local function permit(name, number)
  return number == 1 and name or '+' .. number .. ' ' .. name
end

-- Sets the end of the lease of a holder who shares the lock.
local function lend(name, take, ends)
  for number = 1, take do
    redis.call('ZADD', HOLDERS, digits(ends), permit(name, number))
  end
end

-- Whether one more of this kind may hold the lock beside its owner, if there is
-- one. Those whose leases have ended do not count.
local function may_enter(owner, kind)
  if not owner then return true end
  local base, take = taken_of(kind)
  if kind == 'x' or shared(owner) ~= base then return false end
  local most = tonumber(string.sub(base, 2))
  if not most or redis.call('ZCARD', HOLDERS) + take <= most then return true end
  -- Nothing is written, which would let a newcomer pass when memory is full.
  return redis.call('ZCOUNT', HOLDERS, '(' .. digits(millis()), '+inf') + take <= most
end

-- Forgets those whose leases have ended.
local function sweep(now)
  redis.call('ZREMRANGEBYSCORE', HOLDERS, '-inf', digits(now))
end

-- Makes one more the holder of a lock that it may enter.
local function hold(owner, name, kind, ttl)
  if kind == 'x' then
    redis.call('SET', OWNER, name, 'PX', ttl)
    return
  end
  local now = millis()
  local base, take = taken_of(kind)
  if not owner then
    -- What a lock that was lost has left behind.
    redis.call('DEL', HOLDERS)
    redis.call('SET', OWNER, '*' .. base, 'PX', ttl)
  else
    sweep(now)
  end
  lend(name, take, now + ttl)
  settle(now)
end

-- Extends a lease that is held; the first write passes when memory is full, and
-- what follows passes with it.
local function extend(owner, name, kind, ttl)
  if owner == name then
    redis.call('PEXPIRE', OWNER, ttl)
    return true
  end
  local base, take = taken_of(kind)
  if kind == 'x' or owner ~= '*' .. base then return false end
  local now = millis()
  local ends = tonumber(redis.call('ZSCORE', HOLDERS, name) or 0)
  if ends <= now then return false end
  redis.call('PEXPIRE', OWNER, ttl)
  lend(name, take, now + ttl)
  settle(now)
  return true
end

-- Whom to name as the holder, and how many ms are left of the first lease to end.
local function served(owner)
  if owner and string.sub(owner, 1, 1) == '*' then
    local now = millis()
    sweep(now)
    local first = redis.call('ZRANGE', HOLDERS, 0, 0, 'WITHSCORES')
    if first[1] then return first[2] - now, (string.gsub(first[1], '^%+%d+ ', '')) end
  end
  return redis.call('PTTL', OWNER), owner or ''
end

-- How many wait, without so many of our own, and for how many ms the first has.
local function crowd(own)
  local waiters = math.max(redis.call('ZCARD', QUEUE) - own, 0)
  if waiters == 0 then return 0, 0 end
  local first = redis.call('ZRANGE', QUEUE, 0, 0, 'WITHSCORES')[2]
  return waiters, math.max(time() - first, 0) / 1000
end

-- Takes those out of the queue whose connections are silent, unless that was done a short time ago: as long as
-- SWEPT counts as seen.
local function forget_silent()
  local now = time()
  if not is_silent(SWEPT, now) then return end
  local gone = {}
  for _, member in ipairs(redis.call('ZRANGE', QUEUE, 0, MOST - 1)) do
    local channel = string.match(member, '^%a[%d/]*:[1-9]%d*:([^\n]+)\n') or ''
    if gone[channel] == nil then gone[channel] = is_silent(channel, now) end
    if gone[channel] then redis.call('ZREM', QUEUE, member) end
  end
  note(SWEPT, now)
  tidy()
end

-- Hands the lock, given its owner, to the head of the queue as long as it may run.
-- Returns its owner then, the fences of those whom it granted, by their names, and the
-- tokens of those who follow them.
-- The order of the writes matters: removals pass when memory is full, and what
-- follows a write in the same script passes with it. A member that was taken out
-- of the queue before is served first; a channel that has proved deaf before is
-- not tried again.
local function dispatch(owner, popped, popped_position, deaf)
  local granted, chained = {}, ''
  if owner and not shared(owner) then return owner, granted, chained end
  local now
  local gone = {}
  if deaf then gone[deaf] = true end
  for _ = 1, MOST do
    local head, position
    if owner then
      head = redis.call('ZRANGE', QUEUE, 0, 0)[1]
    else
      head, position = popped, popped_position
      if not head then
        local found = redis.call('ZPOPMIN', QUEUE)
        head, position = found[1], found[2]
      end
      popped = nil
    end
    if not head then break end
    local kind, ttl, channel, name = string.match(head, '^(%a[%d/]*):([1-9]%d*):([^\n]+)\n(.+)$')
    -- What no member looks like is nobody's, and silent.
    channel = channel or ''
    now = now or time()
    gone[channel] = gone[channel] or is_silent(channel, now)
    if owner then
      if not gone[channel] and not may_enter(owner, kind) then break end
      redis.call('ZREM', QUEUE, head)
    end
    if not gone[channel] then
      local fence = next_fence()
      local tokens = ''
      if kind == 'x' and not is_marked(position) and has_more(channel) then
        tokens = followers(QUEUE, head, name)
      end
      hold(owner, name, kind, math.min(ttl, CLAIM_TTL))
      if push(channel, fence, OWNER, name, tokens) then
        granted[name] = fence
        chained = tokens
        if kind == 'x' then
          owner = name
          break
        end
        owner = '*' .. taken_of(kind)
      else
        gone[channel] = true
        if kind == 'x' then
          redis.call('DEL', OWNER)
        else
          local _, take = taken_of(kind)
          for number = 1, take do redis.call('ZREM', HOLDERS, permit(name, number)) end
          settle(millis())
        end
        owner = redis.call('GET', OWNER)
      end
    end
  end
  if now then tidy() end
  return owner, granted, chained
end

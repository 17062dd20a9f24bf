-- Several calls about exclusive locks in one, each as if it had come alone and
-- in the given order: what it costs to call a script is paid once.
-- When memory is full, what follows a renewal or a release passes with it.
-- The functions `acquire` and `release` are the scripts of those names. Where all keys
-- are declared, all calls are about one lock, whose keys are named once.
--
-- KEYS[1] fence  [2..] an owner for each call; or the keys of the one lock
-- ARGV[1] channel  [2] how many of the calls acquire, then for each call: name,
--         and a ttl in ms to acquire, behind a '+' or '-' what the kinds 'x+' and 'x-'
--         say, and before '@' and a position; '=' and a ttl to renew, and behind
--         a space each the fence and the time of a grant that is to be noted; '' to release; or '<'
--         and the ttl of the member to leave the queue
-- reply   the first name, then for each call: the fence of a grant, 1 or 0 where
--         the lock was ours or not, or what its own script replies
local call, FENCE, CHANNEL = redis.call, KEYS[count and 2 or 1], ARGV[1]

-- The last number that was given out here. Those for all acquisitions are taken
-- with the first one; a number that is not needed is left out.
local fence

-- The locks that may have been handed over meanwhile, under a larger one.
local ahead = {}

-- The queues that the last call about a lock has joined, by the owner: its position, ms left
-- of the holder, its name, how many others wait, and whether the connection was noted
-- with more who wait.
local joined = {}

local function by_script(script, owner, ...)
  local reply = script({owner, FENCE}, {...})
  ahead[owner] = ahead[owner] or call('EXISTS', owner) == 1
  return reply
end

-- Joins a queue behind the last call, which has found the lock held and joined it too:
-- neither can have changed since.
local function join(known, owner, name, ttl, sign)
  known.position, known.others = known.position + 1, known.others + 1
  local position = string.format('%.0f', known.position)
  local more = sign == '+'
  if more ~= known.more then
    call('ZADD', owner .. ':s', 'INCR', mark(more and '' or '-', true), CHANNEL)
    known.more = more
  end
  enqueue(owner .. ':q', position, sign == '-', 'x', ttl, CHANNEL, name)
  return {name, 'waiting', position, known.left, known.holder, known.others}
end

local function one(owner, name, what)
  local known, first = joined[owner], string.byte(what)
  joined[owner] = nil
  if not first or first == 60 then -- '<'
    if call('GET', owner) == name and call('EXISTS', owner .. ':q') == 0 then
      return call('DEL', owner)
    end
    local member = first and 'x:' .. string.sub(what, 2) .. ':' .. CHANNEL .. '\n' .. name
    return by_script(release, owner, name, member or nil)
  elseif first == 61 then -- '='
    if call('GET', owner) ~= name then return 0 end
    local ttl, fence, held = string.match(what, '^=(%d+) ?(%d*) ?(%d*)$')
    local extended = call('PEXPIRE', owner, ttl)
    if fence ~= '' then note_grant(owner, name, ttl, fence, held) end
    return extended
  end
  local sign, ttl, position = string.match(what, '^([+-]?)(%d*)@?(.*)$')
  position = position ~= '' and position or nil
  if known and known.holder ~= name and not position then
    joined[owner] = known
    return join(known, owner, name, ttl, sign)
  end
  if not ahead[owner] and call('EXISTS', owner, owner .. ':q') == 0 then
    fence = count and count() or (fence or call('INCRBY', FENCE, ARGV[2]) - ARGV[2]) + 1
    if fence >= LEAST_FENCE then
      call('SET', owner, name, 'PX', ttl)
      return fence
    end
  end
  local kind = (sign ~= '' or position) and 'x' .. sign or nil
  local reply = by_script(acquire, owner, name, ttl, CHANNEL, kind, position)
  -- A reply of the fast path: nothing was handed over, and nobody else can enter.
  if type(reply) == 'table' and reply[2] == 'waiting' and #reply == 6 then
    joined[owner] = {
      position = reply[3], left = reply[4], holder = reply[5], others = reply[6], more = sign == '+',
    }
  end
  return reply
end

local replies = {ARGV[3]}
for i = 2, #ARGV / 2 do
  local owner = KEYS[count and 1 or i]
  local done, reply = pcall(one, owner, ARGV[2 * i - 1], ARGV[2 * i])
  -- An error is a table or a text, depending on the server's version.
  if not done then reply = {err = type(reply) == 'table' and reply.err or reply} end
  replies[i] = reply
end
return replies

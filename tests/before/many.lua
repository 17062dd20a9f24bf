-- Several calls about exclusive locks in one, each as if it had come alone and
-- in the order in which they stand: what it costs to call a script is paid once.
-- When memory is full, what follows a renewal or a release passes with it.
-- The functions `acquire` and `release` are the scripts of those names.
--
-- KEYS[1] fence  [2..] an owner for each call
-- ARGV[1] channel  [2] how many of the calls acquire, then for each call: name,
--         and a ttl in ms to acquire, '=' and a ttl to renew, or '' to release
-- reply   the first name, then for each call: the fence of a grant, 1 or 0 where
--         the lock was ours or not, or what its own script replies
local call, FENCE, CHANNEL = redis.call, KEYS[1], ARGV[1]

-- The last number that was given out here. Those for all acquisitions are taken
-- with the first one; a number that is not needed is left out.
local fence

-- The locks that may have been handed over meanwhile, under a larger one.
local ahead = {}

local function by_script(script, owner, ...)
  local reply = script({owner, FENCE}, {...})
  ahead[owner] = ahead[owner] or call('EXISTS', owner) == 1
  return reply
end

local function one(owner, name, what)
  if what == '' then
    if call('GET', owner) == name and call('EXISTS', owner .. ':q') == 0 then
      return call('DEL', owner)
    end
    return by_script(release, owner, name)
  elseif string.byte(what) == 61 then -- '='
    if call('GET', owner) ~= name then return 0 end
    return call('PEXPIRE', owner, string.sub(what, 2))
  end
  if not ahead[owner] and call('EXISTS', owner, owner .. ':q') == 0 then
    fence = (fence or call('INCRBY', FENCE, ARGV[2]) - ARGV[2]) + 1
    if fence >= LEAST_FENCE then
      call('SET', owner, name, 'PX', what)
      return fence
    end
  end
  return by_script(acquire, owner, name, what, CHANNEL)
end

local replies = {ARGV[3]}
for i = 2, #KEYS do
  local done, reply = pcall(one, KEYS[i], ARGV[2 * i - 1], ARGV[2 * i])
  -- An error is a table or a text, depending on the server's version.
  if not done then reply = {err = type(reply) == 'table' and reply.err or reply} end
  replies[i] = reply
end
return replies

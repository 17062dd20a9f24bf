-- The basic facts about many locks, and the counter of acquisitions. Writes nothing.
--
-- KEYS[1] fence  [2..] owners
-- ARGV[1] how many holders of a shared lock to name  [2] how many owners there are;
--         what follows them in KEYS is named after them  [3] 1 to read notes
-- reply   {fence, server time in us, then for each owner
--          {its value or '', ms left, how many share it, who waits, us of the longest wait, its
--           note as in noted.lua, then for each that shares it: name, ms left, its note, and then,
--           if it has permits, how many each of these has}}
local call = redis.call
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]
local millis = math.ceil(now / 1000)
local reply = {call('GET', KEYS[1]) or '0', string.format('%.0f', now)}
for i = 2, ARGV[2] + 1 do
  local owner, queue, holders = KEYS[i], KEYS[i] .. ':q', KEYS[i] .. ':h'
  local value = redis.pcall('GET', owner) or ''
  -- Somebody has put something else there, which closes the lock.
  if type(value) == 'table' and string.find(value.err, 'WRONGTYPE') then value = value.err end
  if type(value) == 'table' then return value end
  local first = call('ZRANGE', queue, 0, 0, 'WITHSCORES')[2]
  local function note(name) return ARGV[3] == '1' and noted(owner, name, now) or '' end
  local facts = {value, call('PTTL', owner), 0, 0, 0, ''}
  if first then
    facts[4] = call('ZCARD', queue)
    facts[5] = math.max(0, now - first)
  end
  if string.byte(value) == 42 then -- '*'
    -- Those whose lease has ended come first, and do not count.
    local ended = call('ZCOUNT', holders, '-inf', string.format('%.0f', millis))
    facts[3] = call('ZCARD', holders) - ended
    local sharing, taken = {}, nil
    if string.byte(value, 2) == 112 then -- 'p'
      -- A holder of several permits counts once.
      local all = call('ZRANGE', holders, ended, -1, 'WITHSCORES')
      facts[3] = 0
      taken = {}
      for j = 1, #all, 2 do
        local more = string.match(all[j], '^%+%d+ (.+)$')
        if more then
          taken[more] = (taken[more] or 1) + 1
        else
          facts[3] = facts[3] + 1
          if facts[3] <= tonumber(ARGV[1]) then
            sharing[#sharing + 1] = all[j]
            sharing[#sharing + 1] = all[j + 1]
          end
        end
      end
    elseif tonumber(ARGV[1]) > 0 then
      sharing = call('ZRANGE', holders, ended, ended + ARGV[1] - 1, 'WITHSCORES')
    end
    for j = 1, #sharing, 2 do
      facts[#facts + 1] = sharing[j]
      facts[#facts + 1] = sharing[j + 1] - millis
      facts[#facts + 1] = note(sharing[j])
    end
    if taken then
      local counts = {}
      for j = 1, #sharing, 2 do counts[#counts + 1] = taken[sharing[j]] or 1 end
      facts[#facts + 1] = counts
    end
  elseif value ~= '' then
    facts[6] = note(value)
  end
  reply[#reply + 1] = facts
end
return reply

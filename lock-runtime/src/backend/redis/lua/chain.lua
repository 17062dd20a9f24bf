-- Pushes a grant, with each field on a line; whether its connection listens. The key of an
-- owner that has line feeds has them there too: their number stands behind the fence.
local function push(channel, fence, owner, name, tokens)
  if string.find(owner, '\n', 1, true) then
    local _, feeds = string.gsub(owner, '\n', '')
    fence = fence .. ' ' .. feeds
  end
  return redis.call('PUBLISH', channel .. AT, fence .. '\n' .. owner .. '\n' .. name .. tokens) > 0
end

-- What stands behind the token of a name, without the locks that its caller holds.
local function caller(behind)
  local who = string.match(behind, '^( %S+ %S+) %% %S+$')
  return who and string.gsub(who, ' %-$', '') or behind
end

-- Those who get the lock together with `head`, which has been taken out of the queue
-- under `name`: who differs from it by nothing but the token and the locks that its caller
-- holds, wants others to follow, and joined at most WINDOW after the first waiter who is left out. Takes them out too, and
-- sets a number aside for each, behind that of the head. Returns their tokens in their
-- order, each behind a new line, and how many they are. Their connection hands the lock
-- over among them by itself.
local function followers(queue, head, name)
  local from = #head - #name
  local before, behind = string.sub(head, 1, from), string.sub(name, 33)
  local own = caller(behind)
  local members, tokens, looked, latest = {}, {}, 0, nil
  -- A few are looked at before many are, and behind one who is left out none who joined
  -- too late.
  for _, most in ipairs({1, 8, CHAIN - 1}) do
    local found = latest
      and redis.call('ZRANGE', queue, '-inf', latest, 'BYSCORE', 'LIMIT', looked, most - looked, 'WITHSCORES')
      or redis.call('ZRANGE', queue, looked, most - 1, 'WITHSCORES')
    for i = 1, #found, 2 do
      local member, position = found[i], tonumber(found[i + 1])
      local rest = string.sub(member, from + 33)
      looked = looked + 1
      if latest and position > latest then
        most = CHAIN
        break
      elseif string.sub(member, 1, from) == before and (rest == behind or caller(rest) == own)
        and not is_marked(position) then
        members[#members + 1] = member
        tokens[#tokens + 1] = string.sub(member, from + 1, from + 32)
      else
        latest = latest or position + WINDOW
      end
    end
    if looked < most then break end
  end
  if #members == 0 then return '', 0 end
  redis.call('ZREM', queue, unpack(members))
  redis.call('INCRBY', KEYS[2], #members)
  return '\n' .. table.concat(tokens, '\n'), #members
end


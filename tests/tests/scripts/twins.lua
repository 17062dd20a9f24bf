-- What is kept of some locks, and what is wrong with it. Forgets the silent, and gives leases another minute, so that
-- they end where the test ends them.
--
-- KEYS    owners
-- ARGV[1] the server's time in us  [2] us after which a connection is silent  [3] '1' where none has been
-- reply   {what is wrong, then for each lock: {owner, queue, seen, holders}}
local call, now, silence, alive = redis.call, tonumber(ARGV[1]), ARGV[2], ARGV[3] == '1'
local wrong = {}
local reply = {wrong}
for _, owner in ipairs(KEYS) do
  local queue, seen, holders = owner .. ':q', owner .. ':s', owner .. ':h'
  for _, key in ipairs({owner, queue, seen, holders}) do
    if call('PTTL', key) == -1 then wrong[#wrong + 1] = key .. ' has no ttl' end
  end
  local members = call('ZRANGE', queue, 0, -1, 'WITHSCORES')
  if #members == 0 and call('EXISTS', seen) == 1 then
    wrong[#wrong + 1] = seen .. ' is there, and nobody waits'
  end
  for i = 1, #members, 2 do
    local channel = string.match(members[i], '^[^:]*:%d+:([^\n]*)\n')
    if alive and not call('ZSCORE', seen, channel) then
      wrong[#wrong + 1] = channel .. ' waits, and ' .. seen .. ' does not know'
    end
  end
  for _, key in ipairs({owner, holders}) do
    if call('EXISTS', key) == 1 then call('PEXPIRE', key, 60000) end
  end
  call('ZREMRANGEBYSCORE', seen, '0', string.format('(%.0f', now - silence))
  reply[#reply + 1] = {
    call('GET', owner) or '',
    members,
    call('ZRANGE', seen, 0, -1, 'WITHSCORES'),
    call('ZRANGE', holders, 0, -1, 'WITHSCORES'),
  }
end
return reply

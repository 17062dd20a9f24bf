-- The next most common case: a waiter of an exclusive lock who is there. Where it is not as
-- simple as that, release.lua goes on with the member that was taken out of the queue and
-- its position, or with the channel that proved deaf.
local head, position, deaf
if waiting then
  -- A removal comes first, as in functions.lua.
  local popped = call('ZPOPMIN', queue)
  head, position = popped[1], popped[2]
  local ttl, channel, name = string.match(head, '^x:([1-9]%d*):([^\n]+)\n(.+)$')
  local seen = KEYS[1] .. ':s'
  local now = ttl and call('TIME')
  local last = now and call('ZSCORE', seen, channel)
  local is_there = last and now[1] * 1000000 + now[2] - last <= SILENCE
  local fence = is_there and (count and count() or call('INCR', KEYS[2]))
  if fence and fence >= LEAST_FENCE then
    local tokens, more = '', 0
    if waiting > 1 and is_marked(last) and not is_marked(position) then
      tokens, more = followers(queue, head, name)
    end
    local low = fence % 1000000000
    fence = string.format('%d%09d', (fence - low) / 1000000000, low)
    call('SET', KEYS[1], name, 'PX', math.min(ttl, CLAIM_TTL))
    if waiting == more + 1 then call('DEL', seen) end
    if push(channel, fence, KEYS[1], name, tokens) then return owner end
    head, position, deaf = nil, nil, channel
  end
end


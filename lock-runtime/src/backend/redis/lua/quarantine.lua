-- Notes which run of the server has the data, beside the data: another run may have
-- lost the latest of it.
--
-- KEYS[1] the note: a run, and when it was first noticed that it is another one
-- ARGV[1] the server's run, and behind it the name of its data since it took over
--         [2] whether it has: a missing note means another run then: 1 or 0
-- reply   {server time in ms, when it was noticed or 0}
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local note = redis.call('GET', KEYS[1])
local run, noticed = string.match(note or '', '^(%x+) (%d+)$')
-- The name of the data goes with the last replica, and nothing is forgotten.
local same = ARGV[2] == '0' and string.sub(run or '', 1, #ARGV[1]) == ARGV[1]
local known = run == ARGV[1] or same
-- What was noted while the clock was ahead counts from now on, or it would last for as long as the clock has gone back.
if not known or tonumber(noticed) > now then
  noticed = (note or ARGV[2] == '1') and now or 0
  -- A removal passes when memory is full, and what follows passes with it.
  redis.call('DEL', KEYS[1])
  redis.call('SET', KEYS[1], (known and run or ARGV[1]) .. ' ' .. string.format('%.0f', noticed))
end
return {now, tonumber(noticed)}

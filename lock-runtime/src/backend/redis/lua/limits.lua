local CLAIM_TTL = 3000       -- ms that a granted waiter has to claim its grant
local SILENCE = 3000000      -- us after which a connection counts as gone
local SWEPT = '-'            -- in place of a channel: when the silent were last taken out of the queue
local HOUSEKEEPING = 60000   -- ms that the queue outlives its last question
local LEAST_FENCE = 1000000000000000 -- a counter below has lost its data
local MOST = 1000            -- members of a queue that one call looks at
local CHAIN = 64             -- acquisitions of one connection that get a lock at once
local WINDOW = 1000          -- us by which they may have joined after one whom they overtake


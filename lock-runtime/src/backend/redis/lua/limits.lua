local CLAIM_TTL = 3000       -- ms that a granted waiter has to claim its grant
local SILENCE = 3000000      -- us after which a connection counts as gone
local HOUSEKEEPING = 60000   -- ms that the queue outlives its last question

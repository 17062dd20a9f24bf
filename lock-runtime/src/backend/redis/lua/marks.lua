-- Half a microsecond more, which no clock here tells, marks a score and leaves the order as
-- it is: the position of a member that is granted the lock alone, and the time at which a
-- connection was seen of which more wait.
local function mark(score, marked)
  return marked and score .. '.5' or score
end

local function is_marked(score)
  return score % 1 ~= 0
end


-- Takes seats, or repeats what was decided for the id first. An attempt is kept as `seats accepted reserved`; the counts of a
-- workshop are a hash. Answers {seats, accepted, capacity, reserved, replayed}.
local capacity = tonumber(ARGV[3])
local first = redis.call('HGET', KEYS[2], ARGV[1])
if first then
    local seats, accepted, reserved = string.match(first, '(%d+) (%d) (%d+)')
    return {tonumber(seats), tonumber(accepted), capacity, tonumber(reserved), 1}
end
local seats = tonumber(ARGV[2])
local reserved = tonumber(redis.call('HGET', KEYS[1], 'reserved') or '0')
local accepted = 0
if reserved + seats <= capacity then
    accepted = 1
    reserved = redis.call('HINCRBY', KEYS[1], 'reserved', seats)
end
redis.call('HINCRBY', KEYS[1], accepted == 1 and 'accepted' or 'rejected', 1)
redis.call('HSET', KEYS[2], ARGV[1], seats .. ' ' .. accepted .. ' ' .. reserved)
return {seats, accepted, capacity, reserved, 0}

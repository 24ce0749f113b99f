-- A like: the membership, and where it is new the total.
local changed = redis.call('SADD', KEYS[1], ARGV[1])
if changed == 1 then
    redis.call('INCR', KEYS[2])
end
return changed

-- append
-- Items behind those that are there. The first one says whether this was done before: a client that lost the answer
-- sends the same again.
if redis.call('zscore', KEYS[1], ARGV[1]) then
    return 0
end
local newest = redis.call('zrange', KEYS[1], -1, -1, 'withscores')
local score = newest[2] and tonumber(newest[2]) or 0
for place, item in ipairs(ARGV) do
    redis.call('zadd', KEYS[1], score + place, item)
end
return #ARGV

-- replace
-- One item in the place of the first so many, if they still begin and end with the same: items never change, and leave
-- from the front only. The items behind it stay.
local count = tonumber(ARGV[1])
local first = redis.call('zrange', KEYS[1], 0, 0)[1]
local last = redis.call('zrange', KEYS[1], count - 1, count - 1, 'withscores')
if not last[1] or first:sub(1, #ARGV[2]) ~= ARGV[2] or last[1]:sub(1, #ARGV[3]) ~= ARGV[3] then
    return 0
end
local kept = {}
for place = 5, #ARGV do
    kept[ARGV[place]] = redis.call('zscore', KEYS[1], ARGV[place])
end
redis.call('zremrangebyrank', KEYS[1], 0, count - 1)
redis.call('zadd', KEYS[1], last[2], ARGV[4])
for item, score in pairs(kept) do
    redis.call('zadd', KEYS[1], score, item)
end
return 1

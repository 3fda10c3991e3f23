-- Takes from a bucket all of a cost, or nothing.
--
-- KEYS  the bucket; the marker of the data set; with a key, the index of keys
-- ARGV  rate, burst, cost; with a key, the key and how many there may be
--
-- A unit is a bit, or the 28,800th part of a request; the rate is per second.
-- What does not make a whole unit is carried, in millionths. All numbers stay
-- below 2^53, so that all of them are exact.
--
-- A bucket holds the rate that it earns at. What it earned before somebody came with
-- another is what it earns at the lower of both: when the change was, nobody knows here.
--
-- A bucket that is not there had the base when the marker was made, which is nothing
-- where the data set was new, and has earned since. So it is full, as what expired is,
-- unless the data set has been lost.
--
-- What expired has to be full for all who ask. So the marker has their lowest rate and
-- largest burst, and a bucket lives until it had the time to fill with both. When
-- somebody comes with more than that, the marker is made anew, and the base is what a
-- bucket that is not there had until then: no more than the largest burst of before.
-- Less is safe at any time; it counts once nobody has had more for ten minutes.
local rate, burst, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local function whole(n) return string.format('%.0f', n) end

-- earned is what there is after a time, in millionths of a bit beside whole ones, no
-- more than a burst.
local function earned(level, rem, elapsed, rate, burst)
	local seconds = math.floor(elapsed / 1000000)
	if seconds * rate >= burst then return burst, 0 end
	local part, low = elapsed - seconds * 1000000, rate % 1000000
	rem = rem + part * low
	level = level + seconds * rate + part * ((rate - low) / 1000000) + math.floor(rem / 1000000)
	if level >= burst then return burst, 0 end
	return level, rem % 1000000
end

-- The marker: since when, and with what base, a bucket may be missing; the lowest rate and
-- the largest burst; when somebody who had one of them last asked. Times are in
-- microseconds.
local made, base, lowest, most, seen = string.match(redis.call('GET', KEYS[2]) or '', '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
made, base, lowest, most, seen = tonumber(made), tonumber(base), tonumber(lowest), tonumber(most), tonumber(seen)
local lost = not made or made > now
local more = not lost and (rate < lowest or burst > most)
local keep = lost and 0 or math.max(600000000, most / lowest * 1000000)
local gone = lost or now - seen > keep
local stays = (rate == lowest or burst == most) and now - seen > keep / 2
if more or gone or stays then
	if lost then
		made, base = now, 0
	elseif more then
		made, base = now, (earned(base, 0, now - made, lowest, most))
	end
	if gone then
		lowest, most = rate, burst
	else
		lowest, most = math.min(rate, lowest), math.max(burst, most)
	end
	seen = now
	redis.call('SET', KEYS[2], table.concat({whole(made), whole(base), whole(lowest), whole(most), whole(seen)}, ' '))
end

local level, rem, at, earns = base, 0, made, lowest
local held = redis.call('GET', KEYS[1])
if held then
	level, rem, at, earns = string.match(held, '^(%d+) (%d+) (%d+) (%d+)$')
	level, rem, at, earns = tonumber(level) or 0, tonumber(rem) or 0, tonumber(at) or now, tonumber(earns) or rate
end
local other = earns ~= rate
earns = math.min(earns, rate)

-- A clock that was set back earns nothing for the time before.
local back = at > now
level, rem = earned(level, rem, math.max(now - at, 0), earns, burst)

local index = KEYS[3]
if index and not held then
	-- Two that are full go for each that comes.
	local full = redis.call('ZRANGEBYSCORE', index, '-inf', whole(now), 'LIMIT', 0, 2)
	if #full > 0 then
		redis.call('ZREM', index, unpack(full))
	end
	if redis.call('ZCARD', index) >= tonumber(ARGV[5]) and not redis.call('ZSCORE', index, ARGV[4]) then
		local first = redis.call('ZRANGE', index, 0, 0, 'WITHSCORES')
		return {-1, math.max(first[2] - now, 1), 0}
	end
end

local granted = level >= cost
if granted then
	level = level - cost
end
-- A key that is not there is not made by what is refused: that would use up places.
if granted or back and held or other and (held or not index) then
	-- It expires when it is full for everybody, not a millisecond earlier.
	local function full(bits) return math.ceil(bits / lowest * 1000000) end
	local bucket = table.concat({whole(level), whole(rem), whole(now), whole(rate)}, ' ')
	redis.call('SET', KEYS[1], bucket, 'PX', whole(math.ceil(full(most - level) / 1000) + 1))
	if index then
		redis.call('ZADD', index, whole(now + full(most - level)), ARGV[4])
		redis.call('PEXPIRE', index, whole(math.ceil(full(most) / 1000) + 1))
	end
end
return {granted and 1 or 0, level, rem}

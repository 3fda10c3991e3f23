-- Renews or releases one holder's lease of a budget: who may use how much of the
-- rate, until when. Everything is in the hash KEYS[1]:
--
--   @       last created                      times in ms: of the last call, of the state
--   HOLDER  seq expiry held grant demand waiting weight rate version
--
-- ARGV: see the names below. "now" is empty, or the time in ms where the server
-- refuses TIME. "answered" is the sequence number of the answer that the
-- holder's unexpired lease is from, 0 without one. "held" is what it uses at
-- this moment, "claim" what of that it may keep while the state learns.
--
-- Answer: grant, ms that it is valid, target, fair share, rate and version of the
-- cluster, flags, number of holders, ms until those who have too much are
-- expected to have said that they use less; 0 if there is nothing to wait for.
--
-- The invariant: what all holders may be using never exceeds the rate. A holder
-- may be using the most of what it held when it last spoke and of what it was
-- granted then, until it speaks again or its lease ends.

local FLOOR, FLOORS = 0.01, 0.015 -- of the rate: an idle holder's; all idle holders'
local SLACK = 1.05                -- above what was used, for who is not waiting
local STILL = 0.01                -- smaller changes are not worth one
local MOST = 9007199254740991     -- numbers are exact to here
local NEWEST = '09223372036854775807' -- versions are compared as texts, being too long for a number
local PERIODS = 4                 -- that a lease lasts
local LEARNING, DISAGREES, WANTED = 1, 2, 4

local names = {'action', 'now', 'id', 'seq', 'answered', 'lease', 'rate', 'version', 'weight', 'held', 'claim', 'demand', 'waiting'}
local me = {}
for i, name in ipairs(names) do
  local text = ARGV[i]
  if not text then return redis.error_reply('SHAPERD argument ' .. name .. ' is missing') end
  if name == 'action' or name == 'id' or name == 'version' or name == 'now' and text == '' then
    me[name] = text
  else
    local n = string.match(text, '^[%d%.]+$') and tonumber(text)
    if not n or n > MOST then return redis.error_reply('SHAPERD argument ' .. name .. ': a number is right') end
    me[name] = n
  end
end
if me.id == '' or me.id == '@' then return redis.error_reply('SHAPERD argument id: a name is right') end
if not string.match(me.version, '^%d+$') or #me.version ~= #NEWEST or me.version > NEWEST then
  return redis.error_reply('SHAPERD argument version: 20 digits are right')
end
if me.seq < 1 or me.lease < 1 or me.weight <= 0 then return redis.error_reply('SHAPERD argument seq, lease or weight: more than 0 is right') end
if me.action ~= 'renew' and me.action ~= 'release' then return redis.error_reply('SHAPERD argument action: renew or release is right') end

local now = me.now
if now == '' then
  local t = redis.call('TIME')
  now = t[1] * 1000 + math.floor(t[2] / 1000)
end

-- The state, without the holders whose lease has ended.
local key, holders, last, created = KEYS[1], {}, nil, nil
local stored = redis.call('HGETALL', key)
for i = 1, #stored, 2 do
  if stored[i] == '@' then
    last, created = string.match(stored[i + 1], '^(%d+) (%d+)$')
    last, created = tonumber(last), tonumber(created)
  else
    local seq, expiry, held, grant, demand, waiting, weight, its, version =
      string.match(stored[i + 1], '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) ([%d%.]+) (%d+) (%d+)$')
    if seq and #version == #NEWEST and tonumber(weight) then
      holders[stored[i]] = {
        seq = tonumber(seq), expiry = tonumber(expiry), held = tonumber(held), grant = tonumber(grant), demand = tonumber(demand),
        waiting = tonumber(waiting), weight = tonumber(weight), rate = tonumber(its), version = version,
      }
    end
  end
end
if last and now < last then
  if now < last - me.lease then -- the clock was set back: its times are of no use
    redis.call('DEL', key)
    holders, last = {}, nil
  else
    now = last
  end
end
local had = next(holders) ~= nil
for id, h in pairs(holders) do
  if h.expiry <= now then
    redis.call('HDEL', key, id)
    holders[id] = nil
  end
end

-- What the state may have missed. While it learns, nobody is granted more than
-- it holds; after a lease time all that is unknown has ended.
local was = holders[me.id]
if not last or (had and now - last > me.lease / 2) then
  created = now
elseif me.action == 'renew' and me.answered > 0 and now >= created + me.lease and (not was or was.seq < me.answered) then
  created = now
end
local learning = now < created + me.lease

if me.action == 'release' then
  if was and me.seq > was.seq then
    redis.call('HDEL', key, me.id)
    holders[me.id] = nil
  end
  if next(holders) then redis.call('HSET', key, '@', string.format('%.0f %.0f', now, created)) end
  return {0, 0, 0, 0, 0, me.version, 0, 0, 0}
end

local stale = was and me.seq <= was.seq -- a duplicate: it changes nothing
if not stale then
  me.grant = was and was.grant or 0
  holders[me.id] = me
end
local self = holders[me.id]

-- The rate of the newest policy is what is divided.
local rate, version, n, weights = nil, '', 0, 0
for _, h in pairs(holders) do
  if h.version > version or h.version == version and h.rate < rate then
    rate, version = h.rate, h.version
  end
  n, weights = n + 1, weights + h.weight
end

-- Targets: max-min fair over what each wants, by weight.
local floor = math.min(rate * FLOOR, rate * FLOORS / n)
local order, active = {}, 0
for _, h in pairs(holders) do
  h.active = h.waiting > 0 or h.demand > 0
  if h.active then active = active + h.weight end
  h.want = h.waiting > 0 and rate or math.min(rate, h.demand * SLACK + floor)
  h.level = h.want / h.weight
  order[#order + 1] = h
end
table.sort(order, function(a, b) return a.level < b.level end)
local left, weight = rate, weights
for _, h in ipairs(order) do
  h.target = math.min(h.want, math.max(0, left) * h.weight / weight)
  left, weight = left - h.target, weight - h.weight
end
if left > 0 and active > 0 then
  for _, h in ipairs(order) do
    if h.active then h.target = h.target + left * h.weight / active end
  end
end

-- What others may be using, what they wait for, and when they will have shrunk.
local others, lacking, shrunk, wanted = 0, 0, now, false
for _, h in pairs(holders) do
  h.target = math.floor(h.target)
  if h ~= self then
    local out = math.max(h.held, h.grant)
    others = others + out
    wanted = wanted or h.waiting > 0
    if h.target > out * (1 + STILL) then lacking = lacking + h.target - out end
    if out > h.target * (1 + STILL) then shrunk = math.max(shrunk, h.expiry - me.lease + me.lease / PERIODS) end
  end
end

local grant = self.grant
if not stale then
  local free = math.max(0, rate - others)
  local keep = was and math.min(me.held, math.max(was.held, was.grant)) or 0 -- is its own already
  grant = math.min(me.target, math.max(free, keep))
  if learning then
    local claim = math.max(me.claim, keep)
    grant = claim <= free and claim or math.min(grant, claim)
  end
  grant = math.floor(grant)
  local still = math.abs(grant - me.held) <= me.held * STILL
  if keep == me.held and still and (grant > me.held or lacking <= free - me.held) then
    grant = me.held
  end
  me.grant, me.expiry = grant, now + me.lease
  redis.call('HSET', key, '@', string.format('%.0f %.0f', now, created), me.id,
    string.format('%.0f %.0f %.0f %.0f %.0f %.0f %.6f %.0f %s', me.seq, me.expiry, math.floor(me.held), grant,
      math.floor(me.demand), me.waiting, me.weight, me.rate, me.version))
  redis.call('PEXPIRE', key, math.max(60000, 4 * me.lease))
end

local flags = 0
if learning then flags = flags + LEARNING end
if self.rate ~= rate then flags = flags + DISAGREES end
if wanted then flags = flags + WANTED end
local again = 0
if not learning and grant < self.target * (1 - STILL) then again = math.floor(shrunk - now) end
return {grant, self.expiry - now, self.target, math.floor(rate * self.weight / weights), rate, version, flags, n, again}

local way = ARGV[10]
if way == 'x' or way == 's' then
local key, ticket = KEYS[1], ARGV[6] + 0
local queue = key .. ':queue'
local there, tree = nil, true
if way == 's' then
there = redis.call('EXISTS', key, key, queue)
else
there = redis.call('EXISTS', key, key, queue, 'redlock:below', 'redlock:below', 'redlock:below', 'redlock:below')
tree = there > 3
there = there % 4
end
local time = redis.call('TIME')
local now, latest = time[1] * 1000000 + time[2], ARGV[4] + 0
if latest > 0 and now > latest then
return {now, redis.call('GET', 'redlock:marker') or ''}
end
local first, left, free = nil, nil, there == 0
if there == 1 then
first = redis.call('ZRANGE', queue, '0', '0')[1]
free = way == 'x' and string.sub(first, 1, #ARGV[7] + 1) == ARGV[7] .. ' '
elseif there > 1 and way == 'x' then
local holder = redis.pcall('GET', key)
if type(holder) == 'string' and ticket > 0 and ARGV[12] ~= '0' and string.sub(holder, 1, #ARGV[7] + 1) == ARGV[7] .. '.' then
free = tonumber(string.match(holder, '^%d+', #ARGV[7] + 2) or ARGV[12]) < ARGV[12] + 0 -- an earlier attempt was handed it
elseif type(holder) == 'string' and holder ~= ARGV[1] then
if ticket > 0 then -- enter the queue, as enter does (queue.lua)
local waiter = ARGV[7] .. ' '
for _, member in ipairs(there == 3 and redis.call('ZRANGEBYSCORE', queue, ARGV[6], ARGV[6]) or {}) do
if string.sub(member, 1, #waiter) == waiter then
redis.call('ZREM', queue, member)
end
end
local deadline = string.format('%.0f', math.floor(now / 1000) + ARGV[8])
redis.pcall('ZADD', queue, ARGV[6], waiter .. deadline .. ' x0 +' .. ARGV[12] .. '.' .. ARGV[1] .. ' ' .. ARGV[9])
redis.pcall('PEXPIRE', queue, '60000')
end
return {redis.call('PTTL', key), holder, now}
end
elseif there == 2 then
free = redis.pcall('ZCOUNT', key, '1e13', '3e13') == 0
left = free and redis.call('PTTL', key)
free = free and left > 0
end
local marks = free and redis.call('MGET', 'redlock:marker', 'redlock:node')
if marks and not marks[2] and (ARGV[5] == '' or marks[1] == ARGV[5]) then
local ms, number, proposed, stored = math.floor(now / 1000), ARGV[3] + 0, ARGV[3] + 0, true
local below = tonumber(tree and redis.call('ZSCORE', 'redlock:below', ARGV[13]) or 0)
if way == 's' then
number = tonumber(redis.call('ZSCORE', 'redlock:fence', ARGV[13]) or 0)
if number < proposed or number < below or number == 0 then
local own = number
number = math.max(math.min(proposed, now + 500000), own, below, 1)
stored = not (left and redis.call('ZSCORE', key, ARGV[1]))
if stored and own < number then
redis.call('ZADD', 'redlock:fence', 'GT', number == proposed and ARGV[3] or string.format('%.0f', number), ARGV[13])
end
end
stored = stored and redis.call('ZADD', key, 'NX', string.format('%.0f', ms + ARGV[2]), ARGV[1]) == 1
else
stored = math.abs(number - now) <= 500000 and below < number and redis.call('ZADD', 'redlock:fence', 'GT', 'CH', ARGV[3], ARGV[13]) == 1
end
if stored then
if way == 'x' then
redis.call('SET', key, ARGV[1], 'PX', ARGV[2])
else
if left then
redis.pcall('ZREMRANGEBYSCORE', key, '0', '(' .. ms)
end
if not left or left < ARGV[2] + 0 then
local lives = redis.pcall('PEXPIRE', key, ARGV[2])
if type(lives) ~= 'number' then -- the set has no TTL, and no client knows of it
redis.pcall('ZREM', key, ARGV[1])
return lives
end
end
end
if first then
redis.pcall('ZREM', queue, first)
end
if number == proposed then
return now
end
return {number, now}
end
end
end
local now
local function clock()
if not now then
local time = redis.call('TIME')
now = time[1] * 1000000 + time[2]
end
return now
end
local bars, range, holder
local function looking()
if bars then
return
end
bars = {x = 'xslwr', o = 'xslwr', s = 'xlw', l = 'xswr', w = 'xsl', r = 'xl'}
range = {s = 0, l = 1e13, w = 2e13, r = 3e13}
local function millis()
return math.floor(clock() / 1000)
end
local span = {s = {1e13, 3e13}, w = {0, 2e13}, r = {1e13, 2e13}}
local function other(key, token)
local value = redis.pcall('GET', key)
if type(value) ~= 'string' then
return value or nil
elseif value == token then
return true
end
return value, redis.call('PTTL', key)
end
holder = function(key, way, token)
local score = false
if range[way] then
score = redis.pcall('ZSCORE', key, token)
if type(score) == 'table' then
return other(key, token)
end
else
local who, rest = other(key, token)
if type(who) ~= 'table' then
return who, rest
end
end
local left = redis.call('PTTL', key)
if left == -2 then
return nil
elseif left == -1 then
return redis.error_reply('WRONGTYPE ' .. key .. ' is a set without a TTL, and no lock')
end
if score then
local deadline = score - range[way]
if deadline >= millis() and deadline < 1e13 then
return true, nil, left
end
end
if span[way] and redis.call('ZCOUNT', key, span[way][1], '(' .. span[way][2]) == 0 then
return nil, nil, left
end
for bar in string.gmatch(bars[way], '[^x]') do
local last = redis.call('ZREVRANGEBYSCORE', key, range[bar] + 9999999999999, range[bar] + millis(), 'WITHSCORES', 'LIMIT', '0', '1')
if last[1] then
return last[1], last[2] - range[bar] - millis(), left
end
end
return nil, nil, left
end
end
local deadline, like, likeWay
local function hold(key, way, token, ttl, left, fresh)
if way == 'x' or way == 'o' then
redis.call('SET', key, token, 'PX', ttl)
return
end
if way == likeWay and redis.pcall('COPY', like, key) == 1 then
return
end
local digit = way == 'w' and '2' or way == 'r' and '3' or way == 'l' and '1' or '0'
deadline = deadline or string.format('%013.0f', math.floor(clock() / 1000) + ttl)
redis.call('ZADD', key, digit .. deadline, token)
if left and not fresh then
redis.call('ZREMRANGEBYSCORE', key, digit .. '0000000000000', '(' .. digit .. string.format('%013.0f', math.floor(clock() / 1000)))
end
if not left or left < ttl + 0 then
redis.call('PEXPIRE', key, ttl)
end
if not left then
like, likeWay = key, way
end
end
local function drop(key, way, token)
local gone
if way == 'x' or way == 'o' then
gone = redis.pcall('DEL', key)
if type(gone) ~= 'number' and redis.pcall('SET', key, token, 'PXAT', '1').ok then
return 1
end
return gone
end
gone = redis.pcall('ZREM', key, token)
if type(gone) ~= 'number' and redis.pcall('ZADD', key, 'XX', 'CH', '1', token) == 1 then
if redis.pcall('ZCOUNT', key, '-inf', '+inf') == 1 then
redis.pcall('PEXPIRE', key, '0')
end
return 1
end
return gone
end
local function tableOf(way)
if way == 'w' or way == 'r' then
return 'redlock:below'
end
return 'redlock:fence'
end
local older, tell
local function olders()
older = function(key, way)
local says = redis.pcall('GET', key .. string.gsub(tableOf(way), 'redlock', ''))
return type(says) == 'string' and tonumber(says) or 0
end
tell = function(key, way, text, has)
local name = key .. string.gsub(tableOf(way), 'redlock', '')
if not redis.call('SET', name, text, 'PX', '90000000', has > 0 and 'XX' or 'NX') then
return redis.error_reply('WRONGTYPE ' .. name .. ' is no number: it cannot be the counter of ' .. key)
end
end
end
local function queueing()
looking()
local window = 100
local function clash(one, other)
return string.find(bars[one], other, 1, true) or one == 'l' and other == 'l'
end
local function read(member)
local waiter, deadline, way = string.match(member, '^(%S+%.%d+) (%d+) (%l)%d+ ')
local rest = waiter and math.ceil(deadline - clock() / 1000) or 0
if rest > 0 and rest <= 3000 and bars[way] then
return waiter, way, rest
end
end
local function line(queue)
local from, most, entries, at, dead = 0, 10, {}, 1, {}
local function bury()
if dead[1] then
local gone = redis.pcall('ZREM', queue, unpack(dead))
from, dead = from - (tonumber(gone) or 0), {}
end
end
return function()
repeat
if at > #entries then
bury()
entries, at = redis.call('ZRANGE', queue, from, from + most - 1, 'WITHSCORES'), 1
from, most = from + #entries / 2, window
end
local member, ticket = entries[at], entries[at + 1]
at = at + 2
local waiter, way, rest = read(member or '')
if waiter then
bury()
return member, ticket + 0, waiter, way, rest
end
dead[#dead + 1] = member
until not member
end
end
local function ahead(queue, way, waiter, ticket)
local count, first, left = 0, nil, nil
for member, lower, who, mode, rest in line(queue) do
if who == waiter then
return nil, nil, member
elseif ticket > 0 and (ticket < lower or ticket == lower and waiter < who) then
return nil
elseif clash(way, mode) then
return who, rest
end
count, first, left = count + 1, first or who, left or rest
if count == window then
return first, left
end
end
end
local function leave(queue, waiter, ticket)
for _, member in ipairs(redis.call('ZRANGEBYSCORE', queue, ticket, ticket)) do
if string.sub(member, 1, #waiter + 1) == waiter .. ' ' then
return redis.call('ZREM', queue, member) > 0
end
end
return false
end
local function enter(ways, waiter, ticket, lease, owner, try, nonce)
local deadline = string.format('%.0f', math.floor(clock() / 1000) + lease)
for i = 1, #ways do
local key, way = KEYS[i], string.sub(ways, i, i)
if way ~= 'o' then
local queue = key .. ':queue'
leave(queue, waiter, ticket)
redis.pcall('ZADD', queue, ticket, waiter .. ' ' .. deadline .. ' ' .. way .. '0 +' .. try .. '.' .. nonce .. ' ' .. owner)
redis.pcall('PEXPIRE', queue, '60000')
end
end
end
local function call(waiter, message)
redis.pcall('PUBLISH', 'redlock:wake:' .. string.match(waiter, '^(.*)%.'), message)
end
local function wake(key, way, slot, free)
local before, count, held = '', 0, {}
for _, _, waiter, mode in line(key .. ':queue') do
local turn = clash(mode, way)
for other in string.gmatch(before, '.') do
turn = turn and not clash(mode, other)
end
if turn and not free and held[mode] == nil then
held[mode] = holder(key, mode, '') or false
end
if turn and not held[mode] then
call(waiter, slot and mode == 'l' and waiter .. ' ' .. slot or waiter)
end
count = count + 1
if mode == 'x' or mode == 'l' or count == window then
return
end
if not string.find(before, mode, 1, true) then
before = before .. mode
end
end
end
local function follow(queue, way)
local waiter, mode = read(redis.call('ZRANGE', queue, window - 1, window - 1)[1] or '')
if waiter and not clash(mode, way) then
call(waiter, waiter)
end
end
return {ahead = ahead, leave = leave, enter = enter, wake = wake, follow = follow}
end
local latest = ARGV[4] + 0
if latest > 0 and clock() > latest then
return {clock(), redis.call('GET', 'redlock:marker') or ''}
end
local token, ticket = ARGV[1], ARGV[6] + 0
local locks = #ARGV[10]
local looks, ways = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, {unpack(KEYS)}
for i = 1, locks do
local key = KEYS[i]
looks[i], looks[locks + i] = key, key .. ':queue'
ways[i] = string.sub(ARGV[10], i, i)
end
local there = redis.call('EXISTS', unpack(looks, 1, 2 * locks))
local left, before = {}, nil
for i = 1, there > 0 and locks or 0 do
before = before or '(2' .. string.format('%013.0f', math.floor(clock() / 1000))
if ways[i] == 'w' and redis.pcall('ZCOUNT', KEYS[i], '0', before) == 0 then
local ttl = redis.call('PTTL', KEYS[i])
if ttl > 0 then
left[i], there = ttl, there - 1
end
end
end
local busy, mine = there > 0, 0
local refuse, another
if busy then
looking()
refuse = function(reply)
if ticket > 0 then
queueing().enter(ARGV[10], ARGV[7], ARGV[6], ARGV[8], ARGV[9], ARGV[12], token)
end
return reply
end
another = function(key)
local slots = {}
for i = 1, ARGV[11] + 0 do
slots[i] = key .. ':slot:' .. i
end
for i, holds in ipairs(redis.call('MGET', unpack(slots))) do
if not holds then
return i
end
end
return 0
end
end
local handed = false
for i = 1, busy and locks or 0 do
local who, rest, ttl = holder(KEYS[i], ways[i], token)
if ticket > 0 and ARGV[12] ~= '0' and type(who) == 'string' and string.sub(who, 1, #ARGV[7] + 1) == ARGV[7] .. '.' then
if tonumber(string.match(who, '^%d+', #ARGV[7] + 2) or ARGV[12]) >= ARGV[12] + 0 then
return {rest, who, clock()}
end
handed, who = true, nil
end
left[i] = ttl
if who == true then
mine = mine + 1
elseif type(who) == 'table' then
return who
elseif who and ways[i] == 'o' then
return refuse({rest, who, clock(), 0, another(KEYS[i - 1])})
elseif who then
return refuse({rest, who, clock()})
end
end
if mine == locks then
local least = math.huge
for i = 1, locks do
least = math.min(least, redis.call('ZSCORE', tableOf(ways[i]), ARGV[12 + i]) or 0)
end
if least == 0 then
return {'', clock()}
end
return {least, clock()}
end
local marks = redis.call('MGET', 'redlock:marker', 'redlock:node')
if ARGV[5] ~= '' and marks[1] ~= ARGV[5] then
return {marks[1] or '', clock()}
end
local entries
if busy and ticket >= 0 and not handed then
local ahead = queueing().ahead
for i = 1, locks do
if ways[i] ~= 'o' then
local waiter, rest, member = ahead(looks[locks + i], ways[i], ARGV[7], ticket)
if waiter then
return refuse({rest, waiter, clock(), 0})
elseif member then
entries = entries or {}
entries[i] = member
end
end
end
end
local time, proposed, number = clock(), ARGV[3] + 0, nil
if not marks[2] and math.abs(proposed - time) <= 500000 and string.find(ARGV[10], '^w+x$') then
local count = tonumber(redis.call('ZSCORE', 'redlock:below', ARGV[12 + locks]) or 0)
local above, raised = redis.call('ZMSCORE', 'redlock:fence', unpack(ARGV, 13, 11 + locks)), {0, 0, 0, 0, 0, 0, 0, 0}
for i = 1, locks - 1 do
count = math.max(count, above[i] or 0)
raised[2 * i - 1], raised[2 * i] = ARGV[3], ARGV[12 + i]
end
if count < proposed and redis.call('ZADD', 'redlock:fence', 'GT', 'CH', ARGV[3], ARGV[12 + locks]) == 1 then
redis.call('ZADD', 'redlock:below', 'GT', unpack(raised, 1, 2 * locks - 2))
number = proposed
end
end
if not number then
local has = redis.call('ZMSCORE', 'redlock:fence', unpack(ARGV, 13, 12 + locks))
local count, alone, text, theirs = 0, false, nil, nil
for i = 1, locks do
local way, own = ways[i], has[i] or 0
has[i] = own + 0
if has[i] > count then
count, text = has[i], own
end
if way ~= 'w' and way ~= 'r' then
alone = alone or way == 'x' or way == 'o'
local below = redis.call('ZSCORE', 'redlock:below', ARGV[12 + i])
if below and below + 0 > count then
count, text = below + 0, below
end
end
end
if marks[2] then
olders()
theirs = {}
for i = 1, locks do
local own, below = older(KEYS[i], 'x'), older(KEYS[i], 'w')
theirs[i] = below
if ways[i] ~= 'w' and ways[i] ~= 'r' then
theirs[i], count = own, math.max(count, below)
end
count = math.max(count, own)
end
end
number = math.max(math.min(proposed, time + 500000), count, 1)
if alone then
number = math.max(math.min(math.max(proposed, time - 500000), time + 500000), count + 1)
end
if number == proposed then
text = ARGV[3]
elseif not text or number ~= text + 0 then
text = string.format('%.0f', number)
end
local fences, belows = {'redlock:fence', 'GT'}, {'redlock:below', 'GT'}
for i = 1, locks do
local way = ways[i]
if way == 'w' or way == 'r' then
belows[#belows + 1], belows[#belows + 2] = text, ARGV[12 + i]
elseif has[i] < number then
fences[#fences + 1], fences[#fences + 2] = text, ARGV[12 + i]
end
local wrong = theirs and theirs[i] < number and tell(KEYS[i], way, text, theirs[i])
if wrong then
return wrong
end
end
if fences[3] then
redis.call('ZADD', unpack(fences))
end
if belows[3] then
redis.call('ZADD', unpack(belows))
end
end
local held, why = pcall(function()
for i = 1, locks do
hold(KEYS[i], ways[i], token, ARGV[2], left[i], not busy)
end
end)
if not held then -- all or none
for i = 1, locks do
drop(KEYS[i], ways[i], token)
end
return type(why) == 'table' and why or redis.error_reply(tostring(why))
end
if entries then
for i, member in pairs(entries) do
if redis.pcall('ZREM', looks[locks + i], member) == 1 then
queueing().follow(looks[locks + i], ways[i])
end
end
end
if ARGV[11] ~= '0' and redis.call('EXISTS', looks[2 * locks - 1]) == 1 then
local slot = another(KEYS[locks - 1])
if slot > 0 then
pcall(queueing().wake, KEYS[locks - 1], 'l', slot)
end
end
if number == proposed then
return clock()
end
return {number, clock()}

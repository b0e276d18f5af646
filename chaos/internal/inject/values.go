package inject

import (
	"github.com/quorumlock/redlock/internal/script"
)

// MostReplies is how many bytes a node may send in a whole run in which it has values of other programs: fewer than
// one of the long texts has.
const MostReplies = 4_000_000

// What other programs may have at a key, and the two scripts for it. The first puts a value there, unless there is
// something already, and replies 1 if it did. The second takes the value away, and replies 1 if it was as it had been
// put there.
const (
	putValue = `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
if ARGV[1] == 'text' then
  redis.call('SET', KEYS[1], string.rep('x', 4000000))
elseif ARGV[1] == 'board' then
  redis.call('ZADD', KEYS[1], '12', 'ann', '9000', 'bob')
elseif ARGV[1] == 'visits' then
  redis.call('ZADD', KEYS[1], '12', 'ann', '9000', 'bob')
  redis.call('PEXPIRE', KEYS[1], '36000000')
else
  redis.call('HSET', KEYS[1], 'a', '1')
end
return 1`

	takeValue = `
local kind, same = redis.call('TYPE', KEYS[1]).ok, false
if ARGV[1] == 'text' then
  same = kind == 'string' and redis.call('STRLEN', KEYS[1]) == 4000000
elseif ARGV[1] == 'board' or ARGV[1] == 'visits' then
  same = kind == 'zset' and table.concat(redis.call('ZRANGE', KEYS[1], '0', '-1', 'WITHSCORES'), ' ') == 'ann 12 bob 9000'
else
  same = kind == 'hash' and table.concat(redis.call('HGETALL', KEYS[1]), ' ') == 'a 1'
end
local left = redis.call('PTTL', KEYS[1])
if ARGV[1] == 'visits' then
  same = same and left > 30000000
else
  same = same and left == -1
end
if same then redis.call('DEL', KEYS[1]) end
return same and 1 or 0`
)

var values = []string{"text", "visits", "hash", "board"}

// Values are those of other programs on a node. The zero value has none.
type Values struct {
	put     map[string]string // their kinds, by key
	Changed []string          // keys whose values were changed by somebody
	Ever    bool              // there have been some
}

// Put puts values where the locks with these keys should be, and their queues, unless there is something already;
// each time another kind of value. Eval runs a script on the node, and returns its reply.
func (v *Values) Put(locks []string, number int, eval func(script, key, kind string) int) {
	if v.put == nil {
		v.put = make(map[string]string)
	}
	v.Ever = true
	for i, lock := range locks {
		for j, key := range []string{lock, lock + script.QueueSuffix} {
			if kind := values[(number+i+2*j)%len(values)]; v.put[key] == "" && eval(putValue, key, kind) == 1 {
				v.put[key] = kind
			}
		}
	}
}

// Take takes them away again.
func (v *Values) Take(eval func(script, key, kind string) int) {
	for key, kind := range v.put {
		if eval(takeValue, key, kind) != 1 {
			v.Changed = append(v.Changed, key+", a "+kind)
		}
	}
	clear(v.put)
}

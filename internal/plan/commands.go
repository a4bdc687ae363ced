package plan

import (
	"fmt"
	"strings"

	"github.com/redquake/redquake/internal/redis/resp"
)

// Command is one operation of the workload commands. Its words may hold the placeholders
// {key} (a key of the keyspace; the same key wherever it stands twice in one command), {value} (random bytes),
// {int} (a random integer in [0, Keyspace.Keys)), {user} (the virtual user's number), {seq} (a number that grows by one per request of a source).
type Command struct {
	Name   string   `json:"name"`
	Weight int      `json:"weight"` // > 0, relative to the other commands
	Words  []string `json:"words"`
}

// maxWeight bounds a weight.
const maxWeight = 1_000_000

// commandList is the spec of the workload commands.
type commandList []Command

func (l commandList) check(w *Workload) string {
	names := map[string]bool{}
	for i, c := range l {
		at := fmt.Sprintf("[%d]", i)
		switch {
		case c.Name == "":
			return at + ".name: is empty"
		case names[c.Name]:
			return fmt.Sprintf("%s.name: %q stands twice", at, c.Name)
		case c.Weight < 1 || c.Weight > maxWeight:
			return fmt.Sprintf("%s.weight: is %d, must be 1 to %d", at, c.Weight, maxWeight)
		case len(c.Words) == 0 || c.Words[0] == "":
			return at + ".words: is empty"
		}
		if _, err := resp.Compile(c.Words, w.Keyspace.Prefix); err != nil {
			return fmt.Sprintf("%s.words: %s", at, err)
		}
		names[c.Name] = true
	}
	return ""
}

func (l commandList) operations() []Operation {
	operations := make([]Operation, len(l))
	for i, c := range l {
		operations[i] = Operation{Name: c.Name, Weight: c.Weight, ReadOnly: onlyReads(c.Words)}
	}
	return operations
}

func (l commandList) tallies() []string { return nil }

// reads are the commands that replicas carry out (flag readonly of COMMAND) and that load tests use.
var reads = func() map[string]bool {
	known := map[string]bool{}
	for word := range strings.FieldsSeq(`BITCOUNT BITFIELD_RO BITPOS EVALSHA_RO EVAL_RO EXISTS EXPIRETIME FCALL_RO GEODIST GEOHASH GEOPOS GEOSEARCH
		GET GETBIT GETRANGE HEXISTS HGET HGETALL HKEYS HLEN HMGET HRANDFIELD HSCAN HSTRLEN HVALS LCS LINDEX LLEN LPOS LRANGE MGET PEXPIRETIME
		PFCOUNT PTTL SCARD SDIFF SINTER SINTERCARD SISMEMBER SMEMBERS SMISMEMBER SORT_RO SRANDMEMBER SSCAN STRLEN SUBSTR SUNION TTL TYPE XLEN
		XRANGE XREAD XREVRANGE ZCARD ZCOUNT ZDIFF ZINTER ZINTERCARD ZLEXCOUNT ZMSCORE ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK
		ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE ZUNION PING ECHO TIME`) {
		known[word] = true
	}
	return known
}()

func onlyReads(words []string) bool { return len(words) > 0 && reads[strings.ToUpper(words[0])] }

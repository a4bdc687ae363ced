package plan

import (
	"fmt"
	"strings"
)

// Command is one operation of the workload commands. Its words may contain the placeholders
// {key} (a key of the keyspace; the same key if it occurs twice in one command), {value} (random bytes),
// {int} (a random integer in [0, Keyspace.Keys)), {user} (the virtual user's number), {seq} (a number that increases by one per request of a source).
type Command struct {
	Name   string   `json:"name"`
	Weight int      `json:"weight"` // > 0, relative to the other commands
	Words  []string `json:"words"`
}

// commandList is the spec of the workload commands.
type commandList []Command

func (l commandList) check(*Keyspace) string {
	for i, c := range l {
		if len(c.Words) == 0 || c.Words[0] == "" {
			return fmt.Sprintf("[%d].command: must begin with the name of a command of Redis", i)
		}
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

// reads are the commands used by load tests that replicas execute (flag readonly of COMMAND).
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

package plan

import (
	"fmt"
	"strings"
)

// Command is one operation of the workload commands. Its words may contain the placeholders
// {key} (a key of the keyspace; the same key if it occurs twice in one command), {value} (random
// bytes), {int} (a random integer in [0, Keyspace.Keys)), {user} (the virtual user's number), {seq}
// (a number that increases by one per request of a source).
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
		operations[i] = Operation{
			Name:     c.Name,
			Weight:   c.Weight,
			ReadOnly: onlyReads(c.Words),
		}
	}
	return operations
}

func (l commandList) tallies() []string {
	return nil
}

// reads are the commands that only read, and those subcommands of others that do: the flag readonly
// of COMMAND in Redis 7 and 8 and Valkey 9, the documented ones of Redis' modules, and those
// without a key.
var reads = func() map[string]bool {
	known := map[string]bool{}
	for _, list := range [...]string{
		`
		BITCOUNT BITFIELD_RO BITPOS CLUSTERSCAN DBSIZE DUMP EVALSHA_RO EVAL_RO EXISTS EXPIRETIME FCALL_RO GEODIST
		GEOHASH GEOPOS GEORADIUSBYMEMBER_RO
		GEORADIUS_RO GEOSEARCH GET GETBIT GETRANGE HEXISTS HEXPIRETIME HGET HGETALL HKEYS HLEN HMGET HPEXPIRETIME
		HPTTL HRANDFIELD HSCAN HSTRLEN HTTL HVALS
		KEYS LCS LINDEX LLEN LOLWUT LPOS LRANGE MEMORY|USAGE MGET OBJECT|ENCODING OBJECT|FREQ OBJECT|IDLETIME
		OBJECT|REFCOUNT PEXPIRETIME PFCOUNT PTTL
		RANDOMKEY SCAN SCARD SDIFF SINTER SINTERCARD SISMEMBER SMEMBERS SMISMEMBER SORT_RO SRANDMEMBER SSCAN STRLEN
		SUBSTR SUNION TOUCH TTL TYPE VCARD VDIM
		VEMB VGETATTR VINFO VISMEMBER VLINKS VRANDMEMBER VRANGE VSIM XINFO|CONSUMERS XINFO|GROUPS XINFO|STREAM XLEN
		XPENDING XRANGE XREAD XREVRANGE ZCARD ZCOUNT
		ZDIFF ZINTER ZINTERCARD ZLEXCOUNT ZMSCORE ZRANDMEMBER ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANK ZREVRANGE
		ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN
		ZSCORE ZUNION`,
		`JSON.ARRINDEX JSON.ARRLEN JSON.GET JSON.MGET JSON.OBJKEYS JSON.OBJLEN JSON.RESP JSON.STRLEN JSON.TYPE`,
		`FT.AGGREGATE FT.CURSOR|READ FT.DICTDUMP FT.EXPLAIN FT.EXPLAINCLI FT.HYBRID FT.INFO FT.PROFILE FT.SEARCH FT.SPELLCHECK FT.SUGGET FT.SUGLEN
		FT.SYNDUMP FT.TAGVALS FT._LIST`,
		`TS.GET TS.INFO TS.MGET TS.MRANGE TS.MREVRANGE TS.QUERYINDEX TS.RANGE TS.REVRANGE`,
		`BF.CARD BF.EXISTS BF.INFO BF.MEXISTS BF.SCANDUMP CF.COUNT CF.EXISTS CF.INFO CF.MEXISTS CF.SCANDUMP
		CMS.INFO CMS.QUERY TOPK.COUNT TOPK.INFO TOPK.LIST
		TOPK.QUERY TDIGEST.BYRANK TDIGEST.BYREVRANK TDIGEST.CDF TDIGEST.INFO TDIGEST.MAX TDIGEST.MIN TDIGEST.QUANTILE TDIGEST.RANK TDIGEST.REVRANK
		TDIGEST.TRIMMED_MEAN`,
		keyless,
	} {
		for word := range strings.FieldsSeq(list) {
			known[word] = true
		}
	}
	return known
}()

// keyless are commands that do not have the flag, and change nothing.
const keyless = "PING ECHO TIME"

func onlyReads(words []string) bool {
	if len(words) == 0 {
		return false
	}
	name := strings.ToUpper(words[0])
	return reads[name] || len(words) > 1 && reads[name+"|"+strings.ToUpper(words[1])]
}

package redis

import (
	"cmp"
	"strconv"
	"strings"
	"time"
)

// Info is a reply of INFO: its values by their fields. What a server does not say is "", and 0 as a number. CLUSTER INFO has the same form.
type Info map[string]string

// ParseInfo reads the text of INFO. Section headers and lines that are no fields are passed over.
func ParseInfo(text string) Info {
	info := Info{}
	for line := range strings.Lines(text) {
		if field, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && !strings.HasPrefix(field, "#") {
			info[field] = value
		}
	}
	return info
}

// Int is a field that is a whole number; 0 where it is absent or anything else.
func (i Info) Int(field string) int64 { return integer(i[field]) }

// Float is a field that is a number; 0 where it is absent or anything else.
func (i Info) Float(field string) float64 {
	x, _ := strconv.ParseFloat(i[field], 64)
	return x
}

// On is a field that is 1 for yes.
func (i Info) On(field string) bool { return i[field] == "1" }

// CommandStat is what a server has done with a command since it started, or since CONFIG RESETSTAT.
type CommandStat struct {
	Calls    int64         // that were carried out, failed ones included
	Time     time.Duration // that they took
	Failed   int64         // answered with an error while they were carried out; since Redis 6.2
	Rejected int64         // refused before they were carried out; since Redis 6.2
}

// Command is a line of the section commandstats, of a command in lower case such as "get" or, since Redis 7, "config|rewrite". ok is false where
// there is none: the command was never called, or the server does not count it by itself.
func (i Info) Command(name string) (stat CommandStat, ok bool) {
	_, ok = i["cmdstat_"+name]
	p := i.Pairs("cmdstat_" + name)
	return CommandStat{
		Calls: integer(p["calls"]), Time: time.Duration(integer(p["usec"])) * time.Microsecond,
		Failed: integer(p["failed_calls"]), Rejected: integer(p["rejected_calls"]),
	}, ok
}

// Pairs are the parts of a field such as keys=7,expires=0 (db0, slave0, errorstat_OOM, cmdstat_get).
func (i Info) Pairs(field string) map[string]string {
	pairs := map[string]string{}
	for pair := range strings.SplitSeq(i[field], ",") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			pairs[name] = value
		}
	}
	return pairs
}

// Name is the server's product: redis, valkey.
func (i Info) Name() string {
	if i["valkey_version"] != "" {
		return cmp.Or(i["server_name"], "valkey")
	}
	return cmp.Or(i["server_name"], "redis")
}

// Version is the product's. Valkey keeps redis_version at the Redis it forked from.
func (i Info) Version() string { return cmp.Or(i["valkey_version"], i["redis_version"]) }

// Mode is standalone, sentinel or cluster.
func (i Info) Mode() string { return cmp.Or(i["redis_mode"], i["server_mode"]) }

func integer(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

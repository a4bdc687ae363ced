package redis

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/redact"
	"github.com/redquake/redquake/internal/redis/resp"
)

// Info is a reply of INFO: values by field. Missing fields are "", and 0 as a number. CLUSTER INFO
// has the same format.
type Info map[string]string

// ParseInfo parses the text of INFO. Section headers and lines that are not fields are ignored.
func ParseInfo(text string) Info {
	info := Info{}
	for line := range strings.Lines(text) {
		field, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if ok && !strings.HasPrefix(field, "#") {
			info[field] = value
		}
	}
	return info
}

// Int returns a field as integer; 0 if it is missing or not an integer.
func (i Info) Int(field string) int64 {
	return integer(i[field])
}

// Float returns a field as number; 0 if it is missing or not a number.
func (i Info) Float(field string) float64 {
	x, _ := strconv.ParseFloat(i[field], 64)
	return x
}

// On reports whether a field is 1.
func (i Info) On(field string) bool {
	return i[field] == "1"
}

// CommandStat are a server's statistics of a command since its start, or since CONFIG RESETSTAT.
type CommandStat struct {
	Calls    int64         // executed calls, including failed ones
	Time     time.Duration // total execution time
	Failed   int64         // calls that failed during execution; since Redis 6.2
	Rejected int64         // calls rejected before execution; since Redis 6.2
}

// Command is a line of the section commandstats, of a command in lower case such as "get" or, since
// Redis 7, "config|rewrite". ok is false if there is none: the command was never called, or the
// server does not count it separately.
func (i Info) Command(name string) (stat CommandStat, ok bool) {
	_, ok = i["cmdstat_"+name]
	p := i.Pairs("cmdstat_" + name)
	return CommandStat{
		Calls:    integer(p["calls"]),
		Time:     time.Duration(integer(p["usec"])) * time.Microsecond,
		Failed:   integer(p["failed_calls"]),
		Rejected: integer(p["rejected_calls"]),
	}, ok
}

// Together reports whether a server counts a subcommand, such as "client|pause", only together with
// the others of its command, as before Redis 7. A server that counts none of them yet does not say.
func (i Info) Together(name string) bool {
	command, _, sub := strings.Cut(name, "|")
	_, counted := i["cmdstat_"+command]
	return sub && counted
}

// Pairs returns the parts of a field such as keys=7,expires=0 (db0, slave0, errorstat_OOM,
// cmdstat_get).
func (i Info) Pairs(field string) map[string]string {
	pairs := map[string]string{}
	for pair := range strings.SplitSeq(i[field], ",") {
		if name, value, ok := strings.Cut(pair, "="); ok {
			pairs[name] = value
		}
	}
	return pairs
}

// Name returns the product: redis or valkey.
func (i Info) Name() string {
	if i["valkey_version"] != "" {
		return cmp.Or(i["server_name"], "valkey")
	}
	return cmp.Or(i["server_name"], "redis")
}

// Version returns the version of the product. In Valkey, redis_version is that of the Redis from
// which it was forked.
func (i Info) Version() string {
	return cmp.Or(i["valkey_version"], i["redis_version"])
}

// Mode returns standalone, sentinel or cluster.
func (i Info) Mode() string {
	return cmp.Or(i["redis_mode"], i["server_mode"])
}

func integer(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// echoed precedes the arguments of an unknown command in the reply of a server.
const echoed = ", with args beginning with"

// redact removes the password from the error of a login: a server that has no AUTH, or that is no
// Redis, replies with what it was sent.
func (l Login) redact(err error) error {
	if l.Password == "" {
		return err
	}
	if reply, ok := errors.AsType[Error](err); ok {
		text, _, _ := strings.Cut(string(reply), echoed)
		return Error(l.redactText(text))
	}
	foreign, ok := errors.AsType[*resp.UnknownTypeError](err)
	if ok {
		return &resp.UnknownTypeError{Head: []byte(l.redactText(string(foreign.Head)))}
	}
	if text := l.redactText(err.Error()); text != err.Error() {
		return fmt.Errorf("%w (the reply holds the password)", resp.ErrProtocol)
	}
	return err
}

func (l Login) redactText(text string) string {
	return redact.Text(text, l.Password)
}

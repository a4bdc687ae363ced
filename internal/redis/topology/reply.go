package topology

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redquake/redquake/internal/redis"
)

// Replies are converted by redis.Plain. A map is a list of names and values in turn.

// FieldsOf reads a map. Names that are no text are passed over.
func FieldsOf(reply any) map[string]any {
	fields := map[string]any{}
	for l := listOf(reply); len(l) >= 2; l = l[2:] {
		if name, ok := l[0].(string); ok {
			fields[name] = l[1]
		}
	}
	return fields
}

func listOf(reply any) []any {
	l, _ := reply.([]any)
	return l
}

// Pairs reads a map as text, such as the reply of CONFIG GET.
func Pairs(reply any) map[string]string {
	values := map[string]string{}
	for l := listOf(reply); len(l) >= 2; l = l[2:] {
		values[fmt.Sprint(l[0])] = fmt.Sprint(l[1])
	}
	return values
}

// TextOf reads text or a number as text; "" for anything else.
func TextOf(reply any) string {
	switch r := reply.(type) {
	case string:
		return r
	case int64:
		return strconv.FormatInt(r, 10)
	}
	return ""
}

// numberOf reads a number, or text that is one.
func numberOf(reply any) (int64, bool) {
	switch r := reply.(type) {
	case int64:
		return r, true
	case string:
		n, err := strconv.ParseInt(r, 10, 64)
		return n, err == nil
	}
	return 0, false
}

// Unexpected is about a reply that has not the shape that the command's documentation gives it.
func Unexpected(command string, reply any) error {
	if l := listOf(reply); len(l) > 10 {
		reply = l[:10]
	}
	return fmt.Errorf("%s: the reply is not what it should be: %s", command,
		redis.Printable(fmt.Sprintf("%.200v", reply), 200))
}

// ParseSentinelReplicas reads the reply of SENTINEL REPLICAS: the host:port, sorted, of those that
// are up according to the sentinel. A server that reports role primary (as the old one does for
// seconds after a failover) is not included.
func ParseSentinelReplicas(reply any) []string {
	var up []string
	for _, entry := range listOf(reply) {
		f := FieldsOf(entry)
		flags := strings.Split(TextOf(f["flags"]), ",")
		down := slices.ContainsFunc(flags, func(flag string) bool {
			return flag == "s_down" || flag == "o_down" || flag == "disconnected"
		})
		reported := TextOf(f["role-reported"])
		a := joinAddress(f["ip"], f["port"])
		if a != "" && !down && reported != "master" && reported != "primary" {
			up = append(up, a)
		}
	}
	slices.Sort(up)
	return up
}

// ParseSentinels reads the reply of SENTINEL SENTINELS: the host:port of the other sentinels,
// sorted.
func ParseSentinels(reply any) []string {
	var all []string
	for _, entry := range listOf(reply) {
		f := FieldsOf(entry)
		if a := joinAddress(f["ip"], f["port"]); a != "" {
			all = append(all, a)
		}
	}
	slices.Sort(all)
	return all
}

// ParseSwitchMaster reads the message of +switch-master, "name old-host old-port new-host
// new-port".
func ParseSwitchMaster(message string) (name, from, to string, ok bool) {
	w := strings.Fields(message)
	if len(w) != 5 {
		return "", "", "", false
	}
	from, to = joinAddress(w[1], w[2]), joinAddress(w[3], w[4])
	return w[0], from, to, from != "" && to != ""
}

// Naming says which sentinels name which server as the primary. named are the addresses of
// sentinels by that of the server.
func Naming(named map[string][]string) string {
	var parts []string
	for _, primary := range slices.Sorted(maps.Keys(named)) {
		verb := "name"
		if len(named[primary]) == 1 {
			verb = "names"
		}
		parts = append(parts, fmt.Sprintf("%s %s %s",
			strings.Join(slices.Sorted(slices.Values(named[primary])), ", "), verb, primary))
	}
	return strings.Join(parts, "; ")
}

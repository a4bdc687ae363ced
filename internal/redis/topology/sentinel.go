package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

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
		if a := joinAddress(f["ip"], f["port"]); a != "" && !down && reported != "master" &&
			reported != "primary" {
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

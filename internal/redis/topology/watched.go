package topology

import (
	"slices"
	"strings"
	"time"
)

// Watched is a monitored primary from the perspective of a sentinel.
type Watched struct {
	Name string
	// host:port of the server that this sentinel monitors as the primary; while FailingOver,
	// GET-MASTER-ADDR-BY-NAME already returns the promoted one
	Address     string
	ConfigEpoch int64         // increases with every successful failover
	FailingOver bool          // this sentinel is failing it over
	DownAfter   time.Duration // time without a reply after which the sentinel considers it down
	// time since the sentinel considers this server the primary; reset by every switch
	RoleFor time.Duration
}

// ParseWatched reads the reply of SENTINEL MASTER.
func ParseWatched(reply any) (Watched, error) {
	f := FieldsOf(reply)
	w := Watched{Name: TextOf(f["name"])}
	if w.Name == "" {
		return w, Unexpected("SENTINEL MASTER", reply)
	}
	if f["ip"] != nil && f["port"] != nil {
		w.Address = joinAddress(f["ip"], f["port"])
	}
	w.ConfigEpoch, _ = numberOf(f["config-epoch"])
	w.FailingOver = slices.Contains(strings.Split(TextOf(f["flags"]), ","), "failover_in_progress")
	w.DownAfter = milliseconds(f["down-after-milliseconds"])
	w.RoleFor = milliseconds(f["role-reported-time"])
	return w, nil
}

func milliseconds(reply any) time.Duration {
	n, _ := numberOf(reply)
	return time.Duration(n) * time.Millisecond
}

// ParseWatchedNames reads the reply of SENTINEL MASTERS: the names of the primaries that a sentinel
// monitors, sorted.
func ParseWatchedNames(reply any) []string {
	var names []string
	for _, entry := range listOf(reply) {
		names = append(names, TextOf(FieldsOf(entry)["name"]))
	}
	slices.Sort(names)
	return names
}

// ParsePeers reads the reply of SENTINEL SENTINELS: the host:port of the other sentinels by ID,
// including those that are down.
func ParsePeers(reply any) map[string]string {
	peers := map[string]string{}
	for _, entry := range listOf(reply) {
		f := FieldsOf(entry)
		if id := TextOf(f["runid"]); id != "" {
			peers[id] = joinAddress(f["ip"], f["port"])
		}
	}
	return peers
}

// ParsePrimaryAddress reads the reply of SENTINEL GET-MASTER-ADDR-BY-NAME: host:port; "" if the
// sentinel monitors no primary of that name.
func ParsePrimaryAddress(reply any) string {
	l := listOf(reply)
	if len(l) != 2 {
		return ""
	}
	return joinAddress(l[0], l[1])
}

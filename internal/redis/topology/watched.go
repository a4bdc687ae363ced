package topology

import (
	"slices"
	"strings"
	"time"
)

// Watched is what a sentinel says of a primary that it watches.
type Watched struct {
	Name        string
	Address     string        // host:port of the server that this sentinel watches as the primary; GET-MASTER-ADDR-BY-NAME already gives the promoted one while FailingOver
	ConfigEpoch int64         // grows with every failover that succeeded
	FailingOver bool          // this sentinel fails it over now
	DownAfter   time.Duration // without an answer until the sentinel calls it down
	RoleFor     time.Duration // since the sentinel took this server for the primary; it counts anew from every switch
}

// ParseWatched reads the reply of SENTINEL MASTER.
func ParseWatched(reply any) (Watched, error) {
	f := fieldsOf(reply)
	w := Watched{Name: textOf(f["name"])}
	if w.Name == "" {
		return w, unexpected("SENTINEL MASTER", reply)
	}
	if f["ip"] != nil && f["port"] != nil {
		w.Address = joinAddress(f["ip"], f["port"])
	}
	w.ConfigEpoch, _ = numberOf(f["config-epoch"])
	w.FailingOver = slices.Contains(strings.Split(textOf(f["flags"]), ","), "failover_in_progress")
	w.DownAfter, w.RoleFor = milliseconds(f["down-after-milliseconds"]), milliseconds(f["role-reported-time"])
	return w, nil
}

func milliseconds(reply any) time.Duration {
	n, _ := numberOf(reply)
	return time.Duration(n) * time.Millisecond
}

// ParseWatchedNames reads the reply of SENTINEL MASTERS: the names under which a sentinel watches primaries, sorted.
func ParseWatchedNames(reply any) []string {
	var names []string
	for _, entry := range listOf(reply) {
		names = append(names, textOf(fieldsOf(entry)["name"]))
	}
	slices.Sort(names)
	return names
}

// ParsePeers reads the reply of SENTINEL SENTINELS: the host:port of the other sentinels by their IDs, those that are down included.
func ParsePeers(reply any) map[string]string {
	peers := map[string]string{}
	for _, entry := range listOf(reply) {
		f := fieldsOf(entry)
		if id := textOf(f["runid"]); id != "" {
			peers[id] = joinAddress(f["ip"], f["port"])
		}
	}
	return peers
}

// ParsePrimaryAddress reads the reply of SENTINEL GET-MASTER-ADDR-BY-NAME: host:port; "" where the sentinel watches nothing of that name.
func ParsePrimaryAddress(reply any) string {
	l := listOf(reply)
	if len(l) != 2 {
		return ""
	}
	return joinAddress(l[0], l[1])
}

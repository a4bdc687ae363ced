// Package topology finds out how servers relate: their roles, replicas, shards and sentinels. It knows Redis, not Kubernetes.
package topology

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/redis"
)

// Role is a server's role, as it says itself.
type Role string

// The roles.
const (
	Primary  Role = "Primary"
	Replica  Role = "Replica"
	Sentinel Role = "Sentinel"
	Unknown  Role = "Unknown"
)

// Server is what one server said of itself at one instant.
type Server struct {
	Address string
	Name    string // redis | valkey
	Version string
	Mode    string // standalone | sentinel | cluster
	RunID   string // changes with every start of the process
	Role    Role
	Uptime  time.Duration // to the second
	Loading bool          // the data set is being read from disk; commands are refused
}

// ServerOf is what the server at an address said of itself in INFO. What it did not say stays empty.
func ServerOf(address string, info redis.Info) Server {
	s := Server{
		Address: address, Name: info.Name(), Version: info.Version(), Mode: info.Mode(), RunID: info["run_id"], Role: parseRole(info["role"]),
		Uptime: time.Duration(info.Int("uptime_in_seconds")) * time.Second, Loading: info.On("loading"),
	}
	if s.Mode == "sentinel" {
		s.Role = Sentinel
	}
	return s
}

// Attached is a replica as the server that it replicates from sees it.
type Attached struct {
	Address string // host:port, as the replica announced itself
	Online  bool   // it gets writes as they come
	Offset  int64  // that it acknowledged
	Lag     int64  // seconds since it did
}

// ReplicationInfo is what a server says of its replication in INFO.
type ReplicationInfo struct {
	Role     Role
	Offset   int64  // of a primary: what it wrote; of a replica: what it applied
	Failover string // no-failover | waiting-for-sync | failover-in-progress; "" where the server is older than FAILOVER (6.2)

	Replicas []Attached // of a primary (and of a replica that has replicas of its own), the most advanced first

	Primary string // host:port that a replica replicates from, as it was told to
	LinkUp  bool   // a replica is connected to it
	Syncing bool   // a replica copies the whole data set
}

// ReplicationOf is what a server said of its replication in INFO.
func ReplicationOf(info redis.Info) ReplicationInfo {
	r := ReplicationInfo{
		Role: parseRole(info["role"]), Offset: info.Int("master_repl_offset"), Failover: info["master_failover_state"],
		LinkUp: info["master_link_status"] == "up", Syncing: info.On("master_sync_in_progress"),
	}
	if r.Role == Replica {
		r.Primary, r.Offset = joinAddress(info["master_host"], info["master_port"]), info.Int("slave_repl_offset")
	}
	for field := range info {
		if n, found := strings.CutPrefix(field, "slave"); found {
			if _, err := strconv.ParseUint(n, 10, 16); err == nil {
				r.Replicas = append(r.Replicas, attached(info.Pairs(field)))
			}
		}
	}
	slices.SortFunc(r.Replicas, func(a, b Attached) int {
		return cmp.Or(cmp.Compare(b.Offset, a.Offset), strings.Compare(a.Address, b.Address))
	})
	return r
}

func parseRole(word string) Role {
	switch word {
	case "master", "primary":
		return Primary
	case "slave", "replica":
		return Replica
	case "sentinel":
		return Sentinel
	}
	return Unknown
}

func attached(pairs map[string]string) Attached {
	a := Attached{Address: joinAddress(pairs["ip"], pairs["port"]), Online: pairs["state"] == "online"}
	a.Offset, _ = numberOf(pairs["offset"])
	a.Lag, _ = numberOf(pairs["lag"])
	return a
}

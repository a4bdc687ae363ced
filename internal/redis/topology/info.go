// Package topology is the topology of Redis deployments: roles, replicas, shards and sentinels,
// read from what servers reply. Package track discovers and follows it.
package topology

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/redis"
)

// Role is a server's role according to the server.
type Role string

// The roles.
const (
	Primary  Role = "Primary"
	Replica  Role = "Replica"
	Sentinel Role = "Sentinel"
	Unknown  Role = "Unknown"
	// Active is a server of KeyDB with active-replica: it accepts writes, and replicates from another
	// server that does, too.
	Active Role = "active-replica"
)

// Server is the state of one server at one instant, from INFO.
type Server struct {
	Address string
	Name    string // redis | valkey
	Version string
	Mode    string // standalone | sentinel | cluster
	RunID   string // changes with every start of the process
	Role    Role
	Uptime  time.Duration // to the second
	Loading bool          // the data set is being read from disk; commands are rejected

	Replication ReplicationInfo
	Persistence PersistenceInfo
}

// longestWord is how many bytes of a word of INFO are kept: it goes into statuses and messages.
const longestWord = 64

// longestID bounds a run_id, which has 40 characters: with an ellipsis it fits the status of a
// fault.
const longestID = 61

// ServerOf converts the INFO of the server at an address. Missing fields stay empty.
func ServerOf(address string, info redis.Info) Server {
	word := func(text string) string { return redis.Printable(text, longestWord) }
	s := Server{
		Address:     address,
		Name:        word(info.Name()),
		Version:     word(info.Version()),
		Mode:        word(info.Mode()),
		RunID:       redis.Printable(info["run_id"], longestID),
		Role:        RoleOf(info["role"]),
		Uptime:      time.Duration(info.Int("uptime_in_seconds")) * time.Second,
		Loading:     info.On("loading"),
		Replication: ReplicationOf(info),
		Persistence: persistenceOf(info),
	}
	if s.Mode == "sentinel" {
		s.Role = Sentinel
	}
	return s
}

// Attached is a replica from the perspective of its primary.
type Attached struct {
	Address string // host:port, as the replica announced itself
	Online  bool   // it receives the replication stream
	Offset  int64  // last acknowledged offset
	Lag     int64  // seconds since that acknowledgement
}

// ReplicationInfo is the replication state of a server, from INFO.
type ReplicationInfo struct {
	Role     Role
	Offset   int64  // of a primary: written; of a replica: applied
	Failover string // no-failover | waiting-for-sync | failover-in-progress; "" before Redis 6.2

	// of a primary (and of a replica that has replicas of its own), the most advanced first
	Replicas []Attached

	Primary string // host:port of the primary of a replica, as configured
	LinkUp  bool   // a replica is connected to it
	WasUp   bool   // it is, or was before
	Syncing bool   // a replica copies the whole data set
	Barred  bool   // a replica with replica-priority 0, which sentinels never promote
}

// PersistenceInfo is what of the data of a server is on its disk, from INFO.
type PersistenceInfo struct {
	Appends bool // it has an append-only file
	Saved   bool // it has loaded a snapshot, or has saved one since
}

// startup is how long after its start, in seconds, the last save of a server that has saved nothing
// is: that is the instant of its start.
const startup = 2

func persistenceOf(info redis.Info) PersistenceInfo {
	// before Redis 6.2 unknown
	started := info.Int("server_time_usec")/1e6 - info.Int("uptime_in_seconds")
	return PersistenceInfo{
		Appends: info.On("aof_enabled"),
		Saved: info.Int("rdb_saves") > 0 || info.Int("rdb_last_load_keys_loaded") > 0 ||
			info["server_time_usec"] != "" && info.Int("rdb_last_save_time") > started+startup,
	}
}

// ReplicationOf converts the replication section of INFO.
func ReplicationOf(info redis.Info) ReplicationInfo {
	r := ReplicationInfo{
		Role:     RoleOf(info["role"]),
		Offset:   info.Int("master_repl_offset"),
		Failover: redis.Printable(info["master_failover_state"], longestWord),
		LinkUp:   info["master_link_status"] == "up",
		Syncing:  info.On("master_sync_in_progress"),
	}
	if r.Role == Replica {
		since, down := info["master_link_down_since_seconds"]
		r.WasUp = r.LinkUp || down && since != "-1"
		r.Barred = info["slave_priority"] == "0"
		r.Primary = joinAddress(info["master_host"], info["master_port"])
		r.Offset = info.Int("slave_repl_offset")
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

// RoleOf is the role that a word of ROLE, INFO or HELLO names.
func RoleOf(word string) Role {
	switch word {
	case "master", "primary":
		return Primary
	case "slave", "replica":
		return Replica
	case "sentinel":
		return Sentinel
	case string(Active):
		return Active
	}
	return Unknown
}

func attached(pairs map[string]string) Attached {
	a := Attached{Address: joinAddress(pairs["ip"], pairs["port"]), Online: pairs["state"] == "online"}
	a.Offset, _ = numberOf(pairs["offset"])
	a.Lag, _ = numberOf(pairs["lag"])
	return a
}

// RoleReply is the reply of ROLE.
type RoleReply struct {
	Role     Role
	Offset   int64    // of replication; -1 if a replica never had data
	Primary  string   // host:port of the primary of a replica
	Link     string   // of a replica: connect, connecting, handshake, sync, connected
	Replicas []string // host:port of the replicas that are connected to a primary
	Masters  []string // names that a sentinel monitors
}

// ParseRole reads the reply of ROLE.
func ParseRole(reply any) (RoleReply, error) {
	l := listOf(reply)
	if len(l) == 0 {
		return RoleReply{}, Unexpected("ROLE", reply)
	}
	r := RoleReply{Role: RoleOf(TextOf(l[0]))}
	switch {
	case r.Role == Primary && len(l) >= 3:
		r.Offset, _ = numberOf(l[1])
		for _, entry := range listOf(l[2]) {
			if e := listOf(entry); len(e) >= 2 {
				if a := joinAddress(e[0], e[1]); a != "" {
					r.Replicas = append(r.Replicas, a)
				}
			}
		}
	case r.Role == Replica && len(l) >= 5:
		r.Primary, r.Link = joinAddress(l[1], l[2]), TextOf(l[3])
		r.Offset, _ = numberOf(l[4])
	case r.Role == Sentinel && len(l) >= 2:
		for _, name := range listOf(l[1]) {
			r.Masters = append(r.Masters, TextOf(name))
		}
	default:
		return RoleReply{}, Unexpected("ROLE", reply)
	}
	return r, nil
}

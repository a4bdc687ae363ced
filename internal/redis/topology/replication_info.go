package topology

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

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

// Attached is a replica as the server that it replicates from sees it.
type Attached struct {
	Address string // host:port, as the replica announced itself
	Online  bool   // it gets writes as they come
	Offset  int64  // that it acknowledged
	Lag     int64  // seconds since it did
}

// ParseReplication reads the section replication of INFO. Fields that are absent stay empty; lines that are no fields are passed over.
func ParseReplication(info string) ReplicationInfo {
	r := ReplicationInfo{Role: Unknown}
	var host, port string
	var written, applied int64
	for line := range strings.Lines(info) {
		field, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		switch field {
		case "role":
			r.Role = parseRole(value)
		case "master_repl_offset":
			written, _ = strconv.ParseInt(value, 10, 64)
		case "slave_repl_offset":
			applied, _ = strconv.ParseInt(value, 10, 64)
		case "master_failover_state":
			r.Failover = value
		case "master_host":
			host = value
		case "master_port":
			port = value
		case "master_link_status":
			r.LinkUp = value == "up"
		case "master_sync_in_progress":
			r.Syncing = value == "1"
		default:
			if n, isReplica := strings.CutPrefix(field, "slave"); isReplica && isNumber(n) {
				r.Replicas = append(r.Replicas, parseAttached(value))
			}
		}
	}
	r.Offset = written
	if r.Role == Replica {
		r.Primary, r.Offset = joinAddress(host, port), applied
	}
	slices.SortStableFunc(r.Replicas, func(a, b Attached) int {
		return cmp.Or(cmp.Compare(b.Offset, a.Offset), strings.Compare(a.Address, b.Address))
	})
	return r
}

// parseAttached reads ip=10.0.0.2,port=6379,state=online,offset=1234,lag=0.
func parseAttached(value string) Attached {
	var a Attached
	var host, port string
	for pair := range strings.SplitSeq(value, ",") {
		name, text, _ := strings.Cut(pair, "=")
		switch name {
		case "ip":
			host = text
		case "port":
			port = text
		case "state":
			a.Online = text == "online"
		case "offset":
			a.Offset, _ = strconv.ParseInt(text, 10, 64)
		case "lag":
			a.Lag, _ = strconv.ParseInt(text, 10, 64)
		}
	}
	a.Address = joinAddress(host, port)
	return a
}

func isNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}

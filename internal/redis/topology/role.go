package topology

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

package redistest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/redquake/redquake/internal/testing/await"
)

// Replication is a primary with replicas. After a failover Primary and Replicas still have the initial roles: use ROLE,
// or Find.
type Replication struct {
	Primary  *Server
	Replicas []*Server
	t        testing.TB
	options  Options
}

// NewReplication starts a primary with replicas and waits until all are in sync.
func NewReplication(t testing.TB, replicas int, o Options) *Replication {
	t.Helper()
	r := &Replication{t: t, options: o, Primary: launch(t, server, o, nil)}
	for range replicas {
		r.Replicas = append(r.Replicas, r.launchReplica(r.Primary))
	}
	r.WaitHealthy(r.Primary)
	return r
}

// AddReplica starts another replica of a primary and waits until it is in sync.
func (r *Replication) AddReplica(of *Server) *Server {
	r.t.Helper()
	s := r.launchReplica(of)
	r.Replicas = append(r.Replicas, s)
	waitReplica(s, of)
	return s
}

func (r *Replication) launchReplica(of *Server) *Server {
	r.t.Helper()
	return launch(r.t, server, r.options, func(int) []string {
		return []string{fmt.Sprintf("replicaof 127.0.0.1 %d", of.Port)}
	})
}

// RemoveReplica kills a replica and forgets it.
func (r *Replication) RemoveReplica(s *Server) {
	s.Kill()
	r.Replicas = slices.DeleteFunc(r.Replicas, func(o *Server) bool { return o == s })
}

// Addresses are those of all servers, the first primary's first.
func (r *Replication) Addresses() []string {
	return addresses(r.Servers())
}

// Find is the server at an address; nil for an unknown one.
func (r *Replication) Find(address string) *Server {
	return find(r.Servers(), address)
}

// WaitHealthy waits until all other running servers are replicas of primary and in sync.
func (r *Replication) WaitHealthy(primary *Server) {
	r.t.Helper()
	await.Until(r.t, "all follow "+primary.Address(), func() error { return r.healthy(primary) })
}

func (r *Replication) healthy(primary *Server) error {
	for _, s := range r.Servers() {
		if s == primary || !s.Running() {
			continue
		}
		if err := isReplica(s, primary); err != nil {
			return err
		}
	}
	return nil
}

// FailoverTo makes a replica the primary by FAILOVER TO and waits until it is. The other replicas are chained to it, as
// FAILOVER leaves them with the old primary.
func (r *Replication) FailoverTo(from, to *Server) {
	r.t.Helper()
	from.Do("failover", "to", "127.0.0.1", strconv.Itoa(to.Port), "timeout", "5000")
	await.Until(r.t, to.Address()+" is the primary", func() error { return wantInfo(to, "role", "master") })
	for _, s := range r.Servers() {
		if s != to && s != from && s.Running() {
			s.Do("replicaof", "127.0.0.1", strconv.Itoa(to.Port))
		}
	}
}

// Servers are all.
func (r *Replication) Servers() []*Server {
	return append([]*Server{r.Primary}, r.Replicas...)
}

// waitReplica waits until s is in sync with primary, and primary reports so too.
func waitReplica(s, primary *Server) {
	s.T.Helper()
	await.Until(s.T, fmt.Sprintf("%s is a replica of %s", s.Address(), primary.Address()), func() error {
		return isReplica(s, primary)
	})
}

func isReplica(s, primary *Server) error {
	info, err := s.info(context.Background(), "replication")
	if err != nil {
		return err
	}
	if info["role"] != "slave" || info.Int("master_port") != int64(primary.Port) || info["master_link_status"] != "up" {
		return fmt.Errorf("%s: role %s of port %s, link %s", s.Address(), info["role"], info["master_port"],
			info["master_link_status"])
	}
	return inStep(s, primary)
}

// inStep returns an error if a replica does not follow. For up to a second after the full sync a primary sends nothing,
// although it reports the replica as online: only a message that arrives proves that the stream works.
func inStep(s, primary *Server) error {
	ctx := context.Background()
	err := primary.Client().Publish(ctx, "redistest", "").Err()
	if err != nil {
		return err
	}
	sent, err := strconv.Atoi(primary.Info("master_repl_offset"))
	if err != nil {
		return err
	}
	info, err := s.info(ctx, "replication")
	if err != nil {
		return err
	}
	got := info.Int("slave_repl_offset")
	if info["slave_repl_offset"] == "" || got < int64(sent) ||
		info["master_link_status"] != "up" {
		return fmt.Errorf("%s has %d of %d bytes of the stream", s.Address(), got, sent)
	}
	return nil
}

func wantInfo(s *Server, field, want string) error {
	if got := s.Info(field); got != want {
		return fmt.Errorf("%s of %s is %q, not %q", field, s.Address(), got, want)
	}
	return nil
}

func addresses(servers []*Server) []string {
	all := make([]string, len(servers))
	for i, s := range servers {
		all[i] = s.Address()
	}
	return all
}

func find(servers []*Server, address string) *Server {
	for _, s := range servers {
		if s.Address() == address {
			return s
		}
	}
	return nil
}

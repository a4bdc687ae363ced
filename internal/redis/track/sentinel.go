package track

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
)

// sentinelAnswer is the answer of one sentinel.
type sentinelAnswer struct {
	id       string   // of the sentinel; "" before Redis 6.2
	name     string   // of the monitored master
	primary  string   // host:port
	replicas []string // those that are up and replicas according to the sentinel
	others   []string // host:port of further sentinels
}

// sentinels is the policy for Sentinel: the majority of the sentinels determines the primary. ROLE
// is not reliable: after a failover the old primary reports role master for 10 s.
type sentinels struct {
	seeds []string
	name  string // "" = the only one
	// heard are the sentinels that have answered, by identity: they and the seeds are the electorate.
	// Announced sentinels that cannot be reached (behind an address translation) must not prevent a
	// majority of the others.
	heard map[string]string // address -> identity
}

func (s sentinels) ask(ctx context.Context, c *redis.Conn, _ string) (any, error) {
	a := sentinelAnswer{name: s.name}
	if a.name == "" {
		name, err := onlyMaster(ctx, c)
		if err != nil {
			return nil, err
		}
		a.name = name
	}
	replies, err := questions(ctx, c, []string{"SENTINEL", "GET-MASTER-ADDR-BY-NAME", a.name},
		[]string{"SENTINEL", "REPLICAS", a.name},
		[]string{"SENTINEL", "SENTINELS", a.name}, []string{"SENTINEL", "MYID"})
	if err != nil {
		return nil, err
	}
	switch reply := replies[0].(type) {
	case nil:
		return nil, fmt.Errorf("the sentinel monitors no master named %q", a.name)
	case redis.Error:
		return nil, reply
	}
	if a.primary = topology.ParsePrimaryAddress(replies[0]); a.primary == "" {
		return nil, topology.Unexpected("SENTINEL GET-MASTER-ADDR-BY-NAME", replies[0])
	}
	a.replicas = topology.ParseSentinelReplicas(replies[1])
	a.others = topology.ParseSentinels(replies[2])
	a.id = topology.TextOf(replies[3])
	return a, nil
}

func onlyMaster(ctx context.Context, c *redis.Conn) (string, error) {
	reply, err := question(ctx, c, "SENTINEL", "MASTERS")
	if err != nil {
		return "", err
	}
	names := topology.ParseWatchedNames(reply)
	switch len(names) {
	case 0:
		return "", errors.New("the sentinel monitors no master")
	case 1:
		return names[0], nil
	}
	return "", fmt.Errorf("the sentinel monitors %s: %w", strings.Join(names, ", "), errAmbiguous)
}

var errAmbiguous = errors.New("set the name of one of them")

// resolve selects the address with more than half of the electorate's votes. Without a majority the
// previous primary is kept.
func (s sentinels) resolve(before *topology.Map, answers map[string]any) (*topology.Map, []string) {
	votes, up, named := map[string]int{}, map[string]int{}, map[string][]string{}
	counted := map[string]bool{}
	var name string
	var known []string
	for _, address := range inOrder(s.seeds, answers) {
		a := answers[address].(sentinelAnswer)
		identity := a.id
		if identity == "" {
			identity = address
		}
		s.heard[address] = identity
		known = append(known, a.others...)
		if counted[identity] {
			continue // the same sentinel at another address
		}
		counted[identity] = true
		name = a.name
		votes[a.primary]++
		named[a.primary] = append(named[a.primary], address)
		for _, r := range a.replicas {
			up[r]++
		}
	}
	electorate := s.electorate()
	shard := topology.Shard{ID: name}
	problem := fmt.Sprintf("no majority of the %d sentinels: %s", electorate, tally(votes))
	if before != nil {
		shard.Primary = before.Shards[0].Primary
		if shard.ID == "" {
			shard.ID = before.Shards[0].ID
		}
	}
	for address, n := range votes {
		if 2*n > electorate {
			shard.Primary, problem = address, ""
		}
	}
	for address, n := range up {
		if 2*n > len(counted) && address != shard.Primary {
			shard.Replicas = append(shard.Replicas, address)
		}
	}
	slices.Sort(shard.Replicas)
	m := topology.NewMap(topology.KindSentinel, 0, []topology.Shard{shard})
	m.Problem, m.Named = problem, topology.Naming(named)
	return m, known
}

// startConfirmed is start that also waits until the server which the sentinels name is no replica,
// as clients are to ask it: a write there is refused. One that does not answer is left to whoever
// dials it.
func (f *follower) startConfirmed(ctx context.Context) (Tracker, error) {
	tracker, err := f.start(ctx)
	if err != nil {
		return nil, err
	}
	tell := f.target.teller()
	for {
		wrong := f.namesReplica(ctx, tracker.Map())
		if wrong == nil && ctx.Err() == nil {
			return tracker, nil
		}
		if wrong != nil {
			err = fmt.Errorf("find the primary: %w", wrong)
			tell(err)
		}
		select {
		case <-ctx.Done():
			if err == nil { // it was not asked in time
				return tracker, nil
			}
			tracker.Close()
			return nil, err
		case <-f.target.After(2 * restBetween):
		}
	}
}

// namesReplica returns an error if the server that the sentinels name says that it is a replica.
func (f *follower) namesReplica(ctx context.Context, m *topology.Map) error {
	primary := m.Shards[0].Primary
	c := f.target.conn(primary, f.target.Login)
	defer c.Close()
	h, err := sayHello(ctx, c)
	if err != nil || h.role != topology.Replica {
		return nil
	}
	return fmt.Errorf(
		"the sentinels name %s as the primary of %s, but it is a replica%s, which refuses writes (%s)",
		primary, m.Shards[0].ID, follows(ctx, c), m.Named)
}

// follows says of which server a replica is one; "" if it does not tell that to this user.
func follows(ctx context.Context, c *redis.Conn) string {
	reply, err := question(ctx, c, "ROLE")
	if err != nil {
		return ""
	}
	if role, err := topology.ParseRole(reply); err == nil && role.Primary != "" {
		return " of " + role.Primary
	}
	return ""
}

// electorate is the number of different sentinels: those that have answered, and the seeds that
// have not.
func (s sentinels) electorate() int {
	all := map[string]bool{}
	for _, identity := range s.heard {
		all[identity] = true
	}
	for _, seed := range s.seeds {
		if s.heard[seed] == "" {
			all[seed] = true
		}
	}
	return len(all)
}

func tally(votes map[string]int) string {
	if len(votes) == 0 {
		return "none answers"
	}
	var parts []string
	for _, address := range slices.Sorted(maps.Keys(votes)) {
		parts = append(parts, fmt.Sprintf("%d for %s", votes[address], address))
	}
	return strings.Join(parts, ", ")
}

package target

import (
	"context"
	"fmt"
	"strings"

	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
)

// SettlePrimaries ensures that at most one server of a shard counts as its primary. During a
// failover two report that role for up to 10 s: then the majority of the sentinels decides. Without
// sentinels it returns a Problem that may pass.
func (r Redis) SettlePrimaries(ctx context.Context, found []Server) error {
	return r.settle(ctx, found, 2)
}

// ConfirmPrimaries is SettlePrimaries that asks the sentinels for a lone server with that role,
// too.
func (r Redis) ConfirmPrimaries(ctx context.Context, found []Server) error {
	return r.settle(ctx, found, 1)
}

// settle asks for shards in which at least so many servers report the role primary.
func (r Redis) settle(ctx context.Context, found []Server, least int) error {
	claims, replicas := rolesByShard(found)
	for shard, claimants := range claims {
		sentinels := shard == NoShard && len(r.Sentinels.Addresses) > 0
		// Several servers without any replica or sentinel are no deployment of one primary.
		if len(claimants) < least || shard == NoShard && replicas[shard] == 0 && !sentinels {
			continue
		}
		if !sentinels {
			if len(claimants) == 1 {
				continue
			}
			return split("%s report the role primary", names(claimants))
		}
		if err := r.demoteClaimants(ctx, claimants); err != nil {
			return err
		}
	}
	return nil
}

// rolesByShard returns the servers of each shard that report the role primary, and how many report
// the role replica. A node of a cluster without slots is no primary.
func rolesByShard(found []Server) (primaries map[int][]*Server, replicas map[int]int) {
	primaries, replicas = map[int][]*Server{}, map[int]int{}
	for i := range found {
		s := &found[i]
		switch {
		case s.Err != nil || s.State.Mode == "cluster" && s.Shard == NoShard:
		case s.State.Role == topology.Primary:
			primaries[s.Shard] = append(primaries[s.Shard], s)
		case s.State.Role == topology.Replica:
			replicas[s.Shard]++
		}
	}
	return primaries, replicas
}

func names(servers []*Server) string {
	var pods []string
	for _, s := range servers {
		pods = append(pods, s.Pod.Name)
	}
	return strings.Join(pods, " and ")
}

// demoteClaimants sets the role of all servers but the one that most sentinels name to unknown.
func (r Redis) demoteClaimants(ctx context.Context, claimants []*Server) error {
	name, err := r.Sentinels.WatchedName(ctx)
	if err != nil {
		return err
	}
	said, err := r.Sentinels.AskAll(ctx, name)
	if err != nil {
		return err
	}
	address, votes := said.Majority()
	if address == "" {
		return split("%s", votes)
	}
	for _, s := range claimants {
		is, err := r.Same(ctx, address, s.Address, s.State.RunID)
		if err != nil {
			return err
		}
		if !is {
			s.State.Role = topology.Unknown
		}
	}
	return nil
}

// Undecided is the Problem of servers of which more than one is the primary, or none.
type Undecided struct {
	error
	Why string
}

// Unwrap returns the Problem.
func (u *Undecided) Unwrap() error {
	return u.error
}

func split(format string, words ...any) error {
	why := fmt.Sprintf(format, words...)
	return &Undecided{
		error: problem.NoTarget("spec.select.role: cannot determine the primary: %s", why),
		Why:   why,
	}
}

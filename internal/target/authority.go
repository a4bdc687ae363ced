package target

import (
	"context"
	"strings"

	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
)

// SettlePrimaries sees to it that at most one server of a shard counts as its primary. A failover leaves two for up to 10 s: then the sentinels
// are the authority, by majority; where there are none the answer is a Problem that passes, and no guess.
func (r Redis) SettlePrimaries(ctx context.Context, found []Server) error {
	claims, replicas := rolesByShard(found)
	for shard, claimants := range claims {
		sentinels := shard == NoShard && len(r.Sentinels.Addresses) > 0
		// Several servers without any replica or sentinel are no deployment of one primary.
		if len(claimants) < 2 || shard == NoShard && replicas[shard] == 0 && !sentinels {
			continue
		}
		if !sentinels {
			return split("%s call themselves the primary", names(claimants))
		}
		if err := r.asSentinelsSay(ctx, claimants); err != nil {
			return err
		}
	}
	return nil
}

// rolesByShard returns the servers of each shard that call themselves its primary, and how many call themselves replicas. An empty node of a
// cluster is nobody's primary.
func rolesByShard(found []Server) (primaries map[int][]*Server, replicas map[int]int) {
	primaries, replicas = map[int][]*Server{}, map[int]int{}
	for i := range found {
		s := &found[i]
		switch {
		case s.Err != nil || s.Said.Mode == "cluster" && s.Shard == NoShard:
		case s.Said.Role == topology.Primary:
			primaries[s.Shard] = append(primaries[s.Shard], s)
		case s.Said.Role == topology.Replica:
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

// asSentinelsSay removes the role from all that claim it but the one that most sentinels name.
func (r Redis) asSentinelsSay(ctx context.Context, claimants []*Server) error {
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
		is, err := r.Same(ctx, address, s.Address, s.Said.RunID)
		if err != nil {
			return err
		}
		if !is {
			s.Said.Role = topology.Unknown
		}
	}
	return nil
}

func split(format string, words ...any) error {
	return problem.NoTarget("spec.select.role: cannot determine the primary: "+format, words...)
}

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
	claims, replicas := map[int][]*Server{}, map[int]int{}
	for i := range found {
		s := &found[i]
		switch {
		case s.Err != nil || s.Said.Mode == "cluster" && s.Shard == NoShard: // an empty node of a cluster is nobody's primary
		case s.Said.Role == topology.Primary:
			claims[s.Shard] = append(claims[s.Shard], s)
		case s.Said.Role == topology.Replica:
			replicas[s.Shard]++
		}
	}
	for shard, claimants := range claims {
		sentinels := shard == NoShard && len(r.Sentinels.Addresses) > 0
		// Several servers without any replica or sentinel are no deployment of one primary.
		if len(claimants) < 2 || shard == NoShard && replicas[shard] == 0 && !sentinels {
			continue
		}
		if !sentinels {
			var names []string
			for _, s := range claimants {
				names = append(names, s.Pod.Name)
			}
			return split("%s call themselves the primary", strings.Join(names, " and "))
		}
		if err := r.asSentinelsSay(ctx, claimants); err != nil {
			return err
		}
	}
	return nil
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

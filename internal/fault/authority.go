package fault

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
)

// settlePrimaries sees to it that at most one server of a shard counts as its primary. A failover leaves two for up to 10 s: then the sentinels
// are the authority, by majority; where there are none the answer is a Problem that passes, and no guess.
func settlePrimaries(ctx context.Context, around Surroundings, found []server) error {
	claims, replicas := map[int][]*server{}, map[int]int{}
	for i := range found {
		s := &found[i]
		switch {
		case s.err != nil || s.said.Mode == "cluster" && s.shard == noShard: // an empty node of a cluster is nobody's primary
		case s.said.Role == topology.Primary:
			claims[s.shard] = append(claims[s.shard], s)
		case s.said.Role == topology.Replica:
			replicas[s.shard]++
		}
	}
	for shard, claimants := range claims {
		sentinels := shard == noShard && len(around.Sentinels) > 0
		// Several servers without any replica or sentinel are no deployment of one primary.
		if len(claimants) < 2 || shard == noShard && replicas[shard] == 0 && !sentinels {
			continue
		}
		if !sentinels {
			var names []string
			for _, s := range claimants {
				names = append(names, s.pod.Name)
			}
			return split("%s call themselves the primary", strings.Join(names, " and "))
		}
		if err := asSentinelsSay(ctx, around, claimants); err != nil {
			return err
		}
	}
	return nil
}

// asSentinelsSay takes the role from all that claim it but the one that most sentinels name.
func asSentinelsSay(ctx context.Context, around Surroundings, claimants []*server) error {
	f := failover{Surroundings: around, now: time.Now}
	name, err := f.watchedName(ctx)
	if err != nil {
		return err
	}
	said, err := f.askAll(ctx, name)
	if err != nil {
		return err
	}
	address, votes := said.majority()
	if address == "" {
		return split("%s", votes)
	}
	for _, s := range claimants {
		is, err := f.names(ctx, address, &v1alpha1.FaultTarget{Address: Address(s.pod), RunID: s.said.RunID})
		if err != nil {
			return err
		}
		if !is {
			s.said.Role = topology.Unknown
		}
	}
	return nil
}

func split(format string, words ...any) error {
	return &problem.Problem{Reason: v1alpha1.ReasonNoTarget, Message: "spec.select.role: who is the primary is open: " + fmt.Sprintf(format, words...)}
}

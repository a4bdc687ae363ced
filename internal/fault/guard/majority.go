package guard

import (
	"context"
	"fmt"
	"slices"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
)

// lookBeside looks for sentinels in the pods that are hit, and in the others if there is one.
func lookBeside(ctx context.Context, redis target.Redis, found []target.Server, b *blow) {
	hit := func(s *target.Server) bool { return b.hits(s.Pod.Name) }
	redis.SentinelsBeside(ctx, found, hit)
	if slices.ContainsFunc(found, func(s target.Server) bool { return s.SentinelBeside }) {
		redis.SentinelsBeside(ctx, found, func(s *target.Server) bool { return !hit(s) })
	}
}

// electorate is who votes on a failover.
type electorate struct {
	all, answering int            // all that any of them lists, including those that do not answer
	elsewhere      []target.Voter // that are hit in pods which are no servers of the target
}

// electorateOf asks the sentinels for one another where a fault may hit any; zero where none
// answers, or none is hit.
func electorateOf(
	ctx context.Context, redis target.Redis, found []target.Server, b *blow,
) (electorate, error) {
	sentinels := redis.SentinelsAmong(found)
	concerned := b.node != "" || slices.ContainsFunc(found, func(s target.Server) bool {
		return isSentinel(&s) &&
			slices.Contains(b.now, s.Pod.Name)
	})
	if len(sentinels.Addresses) == 0 || !concerned {
		return electorate{}, nil
	}
	name, err := sentinels.WatchedName(ctx)
	if err != nil {
		return electorate{}, nil //nolint:nilerr // those that do not answer cannot be lost
	}
	w, err := sentinels.AskAll(ctx, name)
	if err != nil {
		return electorate{}, nil //nolint:nilerr // as above
	}
	elsewhere, err := b.addSentinels(ctx, redis, w, found)
	return electorate{all: w.All, answering: len(w.Answered), elsewhere: elsewhere}, err
}

func isSentinel(s *target.Server) bool {
	return s.SentinelBeside || s.State.Role == topology.Sentinel
}

// sparesSentinels refuses to hit so many sentinels that the others are no majority.
func (s *scene) sparesSentinels(b *blow) *tooWide {
	voters := slices.Clone(s.sentinels.elsewhere)
	for i := range s.census.Servers {
		if one := &s.census.Servers[i]; isSentinel(one) {
			voters = append(voters, target.Voter{
				Name:    one.Pod.Name,
				Address: one.Address,
				Answers: one.State.Role != topology.Sentinel || one.Err == nil,
			})
		}
	}
	lost, left, all, held := count(voters, b, s.sentinels)
	if left >= all/2+1 || !hitsOne(voters, b) {
		return nil
	}
	return &tooWide{
		v1alpha1.AllowMajorityOfSentinels,
		fmt.Sprintf("it would hit %d of %d sentinels and leave %d, too few to elect a primary", lost, all,
			left), held,
	}
}

// sparesPrimaries refuses to hit so many primaries of a cluster that the others are no majority:
// they cannot elect replicas, and serve no slot themselves. A cluster of a single server has
// nothing to elect.
func (s *scene) sparesPrimaries(b *blow) *tooWide {
	voters := s.census.Voters
	if len(voters) == 1 && len(s.census.Servers)+len(s.census.Missing) == 1 {
		return nil
	}
	lost, left, all, held := count(voters, b, electorate{})
	if left >= all/2+1 || !hitsOne(voters, b) {
		return nil
	}
	return &tooWide{
		v1alpha1.AllowMajorityOfPrimaries,
		fmt.Sprintf(
			"it would hit %d of %d primaries of the cluster and leave %d, too few to elect a replica", lost,
			all, left), held,
	}
}

// hitsOne reports whether any of the voters is hit now that would otherwise vote.
func hitsOne(voters []target.Voter, b *blow) bool {
	return slices.ContainsFunc(voters, func(v target.Voter) bool {
		return v.Answers &&
			slices.Contains(b.now, v.Name)
	})
}

// count counts the voters that are hit, by this fault or another one, and those that are left of
// all. known is the electorate where somebody knows it; zero = the voters are all.
func count(voters []target.Voter, b *blow, known electorate) (lost, left, all int, held []reason) {
	seen := electorate{all: len(voters)}
	for _, v := range voters {
		kept := b.kept(v.Name, v.Address)
		if b.passed && kept.by != "" { // it votes again
			if seen.answering++; !v.Answers {
				known.answering++
			}
			continue
		}
		if !v.Answers {
			continue
		}
		seen.answering++
		switch {
		case slices.Contains(b.now, v.Name), kept.text != "" && kept.by == "":
			lost++
		case kept.by != "":
			lost++
			held = append(held, kept)
		}
	}
	switch {
	case known.all == 0:
		known = seen
	case b.passed && slices.ContainsFunc(b.others, func(h Hit) bool { return h.Power && !h.Beside }):
		known.answering = known.all // those that do not answer may be on the machine that is off
	}
	return lost, max(0, known.answering-lost), known.all, held
}

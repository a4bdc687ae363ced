package guard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
)

// blow is the pods that a fault is about to hit, and those that are hit already.
type blow struct {
	now, before []string
	others      []Hit
	lostPrimary bool // this fault has hit a primary: replicas that have lost theirs are no worse than before
}

// add adds a target that is hit already, unless its process has been replaced since: then it counts by what it shows.
func (b *blow) add(t *v1alpha1.FaultTarget, census *target.Census, traits contract.Traits) {
	if t.InjectedAt == nil || slices.Contains(b.now, t.Pod) {
		return
	}
	b.lostPrimary = b.lostPrimary || t.Role == v1alpha1.RolePrimary
	replaced := slices.ContainsFunc(census.Servers, func(s target.Server) bool { return s.Pod.Name == t.Pod && s.Err == nil && s.State.RunID != t.RunID })
	if traits.Lasts > 0 || !replaced {
		b.before = append(b.before, t.Pod)
	}
}

// hits reports whether this fault hits a pod, or has.
func (b *blow) hits(pod string) bool {
	return slices.Contains(b.now, pod) || slices.Contains(b.before, pod)
}

// holder is the other fault that hits a pod; "" = none.
func (b *blow) holder(pod string) string {
	if i := slices.IndexFunc(b.others, func(h Hit) bool { return h.Pod == pod }); i >= 0 {
		return b.others[i].Fault
	}
	return ""
}

// withinRadius refuses to silence the last copy in sync of a slot that has several, and so many sentinels that the others cannot elect a primary, unless that is allowed.
// A server without a copy is no reason to refuse: its outage is the purpose of the fault.
func withinRadius(ctx context.Context, redis target.Redis, census *target.Census, b blow, allow []v1alpha1.Allowance, traits contract.Traits) error {
	if !traits.Silences {
		return nil
	}
	if !slices.Contains(allow, v1alpha1.AllowMajorityOfSentinels) {
		if traits.WholePod {
			lookBeside(ctx, redis, census.Servers, b)
		}
		if err := sparesMajority(census.Servers, b, electorateOf(ctx, redis.SentinelsAmong(census.Servers), census.Servers, b)); err != nil {
			return err
		}
	}
	if slices.Contains(allow, v1alpha1.AllowAllCopies) {
		return nil
	}
	return sparesCopies(census, b)
}

// lookBeside looks for sentinels in the pods that are hit, and in the others if there is one.
func lookBeside(ctx context.Context, redis target.Redis, found []target.Server, b blow) {
	hit := func(s *target.Server) bool { return b.hits(s.Pod.Name) }
	redis.SentinelsBeside(ctx, found, hit)
	if slices.ContainsFunc(found, func(s target.Server) bool { return s.SentinelBeside }) {
		redis.SentinelsBeside(ctx, found, func(s *target.Server) bool { return !hit(s) })
	}
}

// electorate counts the sentinels that vote on a failover: all that any of them lists, including those that do not answer, and those that answer.
type electorate struct{ all, answering int }

// electorateOf asks the sentinels for one another where a fault hits any; zero where none answers, or none is hit.
func electorateOf(ctx context.Context, sentinels target.Sentinels, found []target.Server, b blow) electorate {
	concerned := slices.ContainsFunc(found, func(s target.Server) bool { return isSentinel(&s) && slices.Contains(b.now, s.Pod.Name) })
	if len(sentinels.Addresses) == 0 || !concerned {
		return electorate{}
	}
	name, err := sentinels.WatchedName(ctx)
	if err != nil {
		return electorate{}
	}
	w, err := sentinels.AskAll(ctx, name)
	if err != nil {
		return electorate{}
	}
	return electorate{all: w.All, answering: len(w.Answered)}
}

func isSentinel(s *target.Server) bool { return s.SentinelBeside || s.State.Role == topology.Sentinel }

// sparesMajority refuses to hit so many sentinels that the others are no majority.
func sparesMajority(found []target.Server, b blow, known electorate) error {
	var seen electorate
	lost, hit := 0, false
	var held []string
	for i := range found {
		s := &found[i]
		if !isSentinel(s) {
			continue
		}
		seen.all++
		if s.State.Role == topology.Sentinel && s.Err != nil {
			continue
		}
		seen.answering++
		hit = hit || slices.Contains(b.now, s.Pod.Name)
		if holder := b.holder(s.Pod.Name); b.hits(s.Pod.Name) {
			lost++
		} else if holder != "" {
			lost++
			held = append(held, holds(holder, s.Pod.Name))
		}
	}
	if known.all == 0 {
		known = seen
	}
	if left := max(0, known.answering-lost); hit && left < known.all/2+1 {
		return tooWide(v1alpha1.AllowMajorityOfSentinels, held, "it would hit %d of %d sentinels and leave %d, too few to elect a primary", lost, known.all, left)
	}
	return nil
}

// copies are the servers that hold the same data.
type copies struct {
	known int
	now   []string // pods that are hit now
	spare int      // in sync, and not hit by any fault
	lost  []string // why the others cannot take over
}

// sparesCopies refuses to hit the last copy in sync of data that has several copies.
func sparesCopies(census *target.Census, b blow) error {
	shards := map[int]*copies{}
	of := func(shard int) *copies {
		if shards[shard] == nil {
			shards[shard] = &copies{}
		}
		return shards[shard]
	}
	served := map[int]bool{} // shards whose primary answers
	for _, s := range census.Servers {
		served[s.Shard] = served[s.Shard] || s.Err == nil && s.State.Role == topology.Primary
	}
	for i := range census.Servers {
		if s := &census.Servers[i]; s.State.Role != topology.Sentinel && !(census.InCluster && s.Shard == target.NoShard) {
			of(s.Shard).count(s, b, served[s.Shard])
		}
	}
	for i := range census.Missing {
		of(census.Missing[i].Shard).countMissing(&census.Missing[i], b)
	}
	for _, shard := range slices.Sorted(maps.Keys(shards)) {
		c := shards[shard]
		if len(c.now) == 0 || c.spare > 0 || c.known == 1 {
			continue
		}
		data := "the data"
		if shard != target.NoShard {
			data = fmt.Sprintf("shard %d", shard)
		}
		return tooWide(v1alpha1.AllowAllCopies, c.lost, "it would hit the last copy in sync of %s (%s)", data, strings.Join(c.now, ", "))
	}
	return nil
}

// count counts the copy of a server.
func (c *copies) count(s *target.Server, b blow, served bool) {
	c.known++
	pod, behind := s.Pod.Name, s.Behind
	if link := s.State.Replication; b.lostPrimary && !served && s.Err == nil && !s.State.Loading && !link.Syncing && link.WasUp {
		behind = ""
	}
	switch holder := b.holder(pod); {
	case slices.Contains(b.now, pod):
		c.now = append(c.now, pod)
	case slices.Contains(b.before, pod):
		c.lost = append(c.lost, "this fault has hit "+pod)
	case holder != "":
		c.lost = append(c.lost, holds(holder, pod))
	case behind != "":
		c.lost = append(c.lost, pod+" "+behind)
	case s.State.Role == topology.Unknown:
		c.lost = append(c.lost, pod+" is not the primary that the sentinels name")
	default:
		c.spare++
	}
}

// countMissing counts a copy that no running pod of the target has.
func (c *copies) countMissing(m *target.Missing, b blow) {
	c.known++
	switch holder := b.holder(m.Name); {
	case m.Online:
		c.spare++
	case holder != "":
		c.lost = append(c.lost, holds(holder, m.Name))
	default:
		c.lost = append(c.lost, m.Name+" "+m.Why)
	}
}

func holds(fault, pod string) string { return fmt.Sprintf("RedisFault %s holds %s", fault, pod) }

// mostReasons is how many servers a refusal names.
const mostReasons = 8

// tooWide is the refusal of a guard. lost is why other servers cannot take over.
func tooWide(allowance v1alpha1.Allowance, lost []string, format string, words ...any) error {
	why := ""
	if len(lost) > 0 {
		why = ": " + strings.Join(lost[:min(len(lost), mostReasons)], "; ")
	}
	if more := len(lost) - mostReasons; more > 0 {
		why += fmt.Sprintf("; and %d more", more)
	}
	return problem.TooWide("spec.select: %s%s; spec.allow: [%s] lifts this guard", fmt.Sprintf(format, words...), why, allowance)
}

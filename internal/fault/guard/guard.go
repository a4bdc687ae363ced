// Package guard chooses the targets of a fault, and refuses a fault with too wide an effect.
package guard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target"
)

// Choose chooses the targets of a fault behind the guards: a fault in a protected namespace is refused, and no fault silences every copy of a slot or a majority of the
// sentinels unless spec.allow permits it. A refusal is a Problem.
func Choose(ctx context.Context, redis target.Redis, spec *v1alpha1.RedisFaultSpec, traits contract.Traits) ([]v1alpha1.FaultTarget, error) {
	if err := unprotected(ctx, redis); err != nil {
		return nil, err
	}
	found, err := redis.Survey(ctx)
	if err != nil {
		return nil, err
	}
	if err := redis.SettlePrimaries(ctx, found); err != nil {
		return nil, err
	}
	within, err := onNode(found, traits.Node)
	if err != nil {
		return nil, err
	}
	hit, err := choose(redis, within, spec.Select)
	if err != nil {
		return nil, err
	}
	if traits.WholePod {
		redis.SentinelsBeside(ctx, found)
	}
	if traits.Silences {
		err = withinRadius(found, hit, spec.Allow, electorateOf(ctx, redis.Sentinels, found, hit))
	}
	return hit, err
}

// onNode is the servers whose pods a fault can hit: all, or those on the one node that it concerns. It returns a Problem where there is none.
func onNode(found []target.Server, node string) ([]target.Server, error) {
	if node == "" {
		return found, nil
	}
	var there []target.Server
	var others []string
	for _, s := range found {
		if s.Pod.Spec.NodeName == node {
			there = append(there, s)
		} else {
			others = append(others, s.Pod.Name+" is on "+s.Pod.Spec.NodeName)
		}
	}
	if len(there) == 0 {
		return nil, problem.NoTarget("spec.action.nodeLoss.node: no server of the target is on node %s: %s", node, strings.Join(others, ", "))
	}
	return there, nil
}

// unprotected refuses a namespace whose owner forbids faults.
func unprotected(ctx context.Context, redis target.Redis) error {
	namespace := &corev1.Namespace{}
	if err := redis.Live.Get(ctx, client.ObjectKey{Name: redis.Namespace}, namespace); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("read namespace %s: %w", redis.Namespace, err)
	}
	if namespace.Annotations[v1alpha1.AnnotationProtected] != "true" {
		return nil
	}
	return &problem.Problem{Reason: v1alpha1.ReasonProtected, Lasting: true,
		Message: fmt.Sprintf("namespace %s has the annotation %s: no fault may be injected there", redis.Namespace, v1alpha1.AnnotationProtected)}
}

// electorate counts the sentinels that vote on a failover: all that any of them lists, including those that do not answer, and those that answer.
type electorate struct{ all, answering int }

// electorateOf asks the sentinels for one another where a fault hits any; zero where none answers, or none is hit.
func electorateOf(ctx context.Context, sentinels target.Sentinels, found []target.Server, hit []v1alpha1.FaultTarget) electorate {
	concerns := func(t v1alpha1.FaultTarget) bool {
		return slices.ContainsFunc(found, func(o target.Server) bool {
			return o.Pod.Name == t.Pod && (o.SentinelBeside || o.State.Role == topology.Sentinel)
		})
	}
	if len(sentinels.Addresses) == 0 || !slices.ContainsFunc(hit, concerns) {
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

// withinRadius refuses to silence every copy of a slot that has several, and so many sentinels that the others cannot elect a primary, unless
// that is allowed. A server without a copy is no reason to refuse: its outage is the purpose of the fault.
func withinRadius(found []target.Server, hit []v1alpha1.FaultTarget, allow []v1alpha1.Allowance, known electorate) error {
	isHit := func(s *target.Server) bool {
		return slices.ContainsFunc(hit, func(t v1alpha1.FaultTarget) bool { return t.Pod == s.Pod.Name })
	}
	if !slices.Contains(allow, v1alpha1.AllowMajorityOfSentinels) {
		if err := sparesMajority(found, isHit, known); err != nil {
			return err
		}
	}
	if !slices.Contains(allow, v1alpha1.AllowAllCopies) {
		return sparesCopies(found, isHit)
	}
	return nil
}

// sparesMajority refuses to hit so many sentinels that the others are no majority.
func sparesMajority(found []target.Server, isHit func(*target.Server) bool, known electorate) error {
	all, lost := 0, 0
	for i := range found {
		s := &found[i]
		if s.State.Role != topology.Sentinel && !s.SentinelBeside {
			continue
		}
		all++
		if isHit(s) {
			lost++
		}
	}
	if known.all == 0 {
		known = electorate{all, all}
	}
	if left := max(0, known.answering-lost); lost > 0 && left < known.all/2+1 {
		return tooWide(v1alpha1.AllowMajorityOfSentinels, "it would hit %d of %d sentinels and leave %d, too few to elect a primary", lost, known.all, left)
	}
	return nil
}

// copies are the servers that hold the same data.
type copies struct {
	pods  []string
	spare int // not hit, and answering: one that does not answer cannot take over
	hit   bool
}

// sparesCopies refuses to hit a shard of several servers so that none is left.
func sparesCopies(found []target.Server, isHit func(*target.Server) bool) error {
	shards := map[int]copies{}
	for i := range found {
		s := &found[i]
		if s.State.Role == topology.Sentinel {
			continue
		}
		c := shards[s.Shard]
		c.pods = append(c.pods, s.Pod.Name)
		switch {
		case isHit(s):
			c.hit = true
		case s.Err == nil:
			c.spare++
		}
		shards[s.Shard] = c
	}
	for _, shard := range slices.Sorted(maps.Keys(shards)) {
		c := shards[shard]
		if !c.hit || c.spare > 0 || len(c.pods) == 1 {
			continue
		}
		data := "the data"
		if shard != target.NoShard {
			data = fmt.Sprintf("shard %d", shard)
		}
		return tooWide(v1alpha1.AllowAllCopies, "it would hit every copy of %s that answers (%s)", data, strings.Join(c.pods, ", "))
	}
	return nil
}

func tooWide(allowance v1alpha1.Allowance, format string, words ...any) error {
	return &problem.Problem{Reason: v1alpha1.ReasonBlastRadius, Lasting: true,
		Message: fmt.Sprintf("spec.select: "+format, words...) + fmt.Sprintf("; spec.allow: [%s] lifts this guard", allowance)}
}

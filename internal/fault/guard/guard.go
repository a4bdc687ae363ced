// Package guard chooses the targets of a fault, and refuses a fault with too wide an effect.
package guard

import (
	"context"
	"fmt"
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

// Choose is Select where no other fault is unfinished, and nothing is selected at random.
func Choose(
	ctx context.Context, redis target.Redis, spec *v1alpha1.RedisFaultSpec, traits contract.Traits,
) ([]v1alpha1.FaultTarget, error) {
	selected, err := Select(ctx, redis, spec, traits, nil, nil)
	return selected.Targets, err
}

// Selection is what a fault is about to act on.
type Selection struct {
	Targets []v1alpha1.FaultTarget
	Pods    []corev1.Pod // all of the Redis, in whatever state
	Nodes   []string     // of the zone that is lost, sorted; nil = those of the targets
}

// Select chooses the targets of a fault behind the guards: a fault in a protected namespace is
// refused, and no fault silences the last copy in sync of a slot or a majority of those that elect
// primaries, or makes replicas copy an empty data set, unless spec.allow permits it. What other
// faults hit is not spared. seed is that of a selection at random; nil where there is none. A
// refusal is a Problem; with one that is Occupied, the targets are returned as well.
func Select(
	ctx context.Context, redis target.Redis, spec *v1alpha1.RedisFaultSpec, traits contract.Traits,
	seed *int32, others []Hit,
) (selected Selection, err error) {
	census, err := survey(ctx, redis)
	if err != nil {
		return selected, err
	}
	selected.Pods = census.Pods
	within, err := onNode(census.Servers, spec.Action.Type, traits.Node)
	if err != nil {
		return selected, err
	}
	matching, err := match(ctx, redis, within, traits.Node, spec.Select, others)
	if err != nil {
		return selected, err
	}
	if traits.Zone != "" {
		matching, selected.Nodes, err = inLostZone(ctx, redis, matching, traits.Zone)
		if err != nil {
			return selected, err
		}
	}
	selected.Targets, err = take(matching, spec.Select, seed)
	if err == nil {
		err = selectsNode(spec, within, selected.Targets)
	}
	if err != nil {
		return selected, err
	}
	b := &blow{others: others}
	for i := range selected.Targets {
		b.now = append(b.now, selected.Targets[i].Pod)
	}
	b.addNode(spec, census.Servers)
	seen, err := withinRadius(ctx, redis, &census, b, spec, traits)
	for i := range selected.Targets {
		seen.note(&selected.Targets[i])
	}
	return selected, err
}

// Check asks once more whether a target may be hit, just before that: it surveys the target anew,
// and returns a Problem if the namespace became protected, if the target has lost the role by which
// it was selected, or if hitting it now would be too wide. targets are all of the fault: those with
// an InjectedAt are hit already. A target whose pod does not run any more passes, as an injection
// does nothing there.
func Check(
	ctx context.Context, redis target.Redis, spec *v1alpha1.RedisFaultSpec, traits contract.Traits,
	t *v1alpha1.FaultTarget, targets []v1alpha1.FaultTarget, others []Hit,
) error {
	return CheckTogether(ctx, redis, spec, traits, []*v1alpha1.FaultTarget{t}, targets, others)
}

// CheckTogether is Check for targets that are hit at the same time. Without one it asks only
// whether the namespace became protected.
func CheckTogether(
	ctx context.Context, redis target.Redis, spec *v1alpha1.RedisFaultSpec, traits contract.Traits,
	hit []*v1alpha1.FaultTarget, targets []v1alpha1.FaultTarget, others []Hit,
) error {
	if len(hit) == 0 {
		return Unprotected(ctx, redis.Live, redis.Namespace)
	}
	census, err := survey(ctx, redis)
	if err != nil {
		return err
	}
	b := &blow{others: others}
	for _, t := range hit {
		at := slices.IndexFunc(census.Servers, func(s target.Server) bool {
			return s.Pod.Name == t.Pod && string(s.Pod.UID) == t.UID
		})
		if at < 0 {
			continue
		}
		found := &census.Servers[at]
		// what acts apart from the servers has no use for the role
		if !traits.Apart && silencedBeside(redis, found, others) == nil {
			if err := keptRole(found, spec.Select.Role, t.Role); err != nil {
				return err
			}
		}
		b.now = append(b.now, t.Pod)
	}
	if len(b.now) == 0 {
		return nil
	}
	b.addNode(spec, census.Servers)
	return tooWideOn(ctx, redis, &census, spec, traits, b, targets)
}

// Together reports whether a fault breaks all its targets at once, after one check of the guards:
// it can, and its user permits that no copy is left. Others are broken one after the other, so that
// the guards judge each target by what those before it have left.
func Together(spec *v1alpha1.RedisFaultSpec, traits contract.Traits) bool {
	return traits.Together && slices.Contains(spec.Allow, v1alpha1.AllowAllCopies)
}

// CheckAlso asks whether the pods that have taken the places of targets may be hit as well: it
// returns a Problem if the namespace became protected, or if hitting them now would be too wide.
func CheckAlso(
	ctx context.Context, redis target.Redis, spec *v1alpha1.RedisFaultSpec, traits contract.Traits,
	pods []string, targets []v1alpha1.FaultTarget, others []Hit,
) error {
	census, err := survey(ctx, redis)
	if err != nil {
		return err
	}
	b := &blow{now: pods, others: others}
	return tooWideOn(ctx, redis, &census, spec, traits, b, targets)
}

// tooWideOn is why a blow is too wide after what has hit the other targets.
func tooWideOn(
	ctx context.Context, redis target.Redis, census *target.Census, spec *v1alpha1.RedisFaultSpec,
	traits contract.Traits, b *blow, targets []v1alpha1.FaultTarget,
) error {
	for i := range targets {
		b.add(&targets[i], census, traits)
	}
	_, err := withinRadius(ctx, redis, census, b, spec, traits)
	return err
}

// survey counts the servers and the copies of a target in a namespace that is not protected.
func survey(ctx context.Context, redis target.Redis) (target.Census, error) {
	if err := Unprotected(ctx, redis.Live, redis.Namespace); err != nil {
		return target.Census{}, err
	}
	census, err := redis.Census(ctx)
	if err != nil {
		return census, err
	}
	if err := noActiveReplicas(census.Servers); err != nil {
		return census, err
	}
	return census, redis.SettlePrimaries(ctx, census.Servers)
}

// noActiveReplicas refuses servers of KeyDB that replicate from one another: the guards count
// copies by primaries and their replicas.
func noActiveReplicas(found []target.Server) error {
	for i := range found {
		s := &found[i]
		if s.Err == nil && s.State.Role == topology.Active {
			return problem.Unsupported(
				"the server of pod %s has active-replica yes (KeyDB): it is primary and replica at once, so "+
					"no guard can tell which copies would be left. Set active-replica no, or measure a fault of "+
					"your own with a RedisLoadTest alone", s.Pod.Name)
		}
	}
	return nil
}

// LostRole is the Problem of a target that has another role now than the one by which it was
// selected.
type LostRole struct{ *problem.Problem }

// Unwrap returns the Problem.
func (l LostRole) Unwrap() error {
	return l.Problem
}

// keptRole returns a LostRole where a server was selected by its role and has another one now.
func keptRole(s *target.Server, selected, recorded v1alpha1.RedisRole) error {
	if selected == "" || selected == v1alpha1.RoleAny {
		return nil
	}
	if s.Err != nil {
		return problem.NoTarget(
			"spec.select.role: whether pod %s is still %s is unknown: it did not answer (%v)", s.Pod.Name,
			recorded, s.Err)
	}
	if roleOf(s.State.Role) == recorded {
		return nil
	}
	return LostRole{&problem.Problem{
		Reason:  v1alpha1.ReasonNoTarget,
		Lasting: true,
		Message: fmt.Sprintf("spec.select.role: pod %s was selected as %s and is %s now", s.Pod.Name,
			recorded, s.State.Role),
	}}
}

// onNode is the servers whose pods a fault of a type can hit: all, or those on the one node that it
// concerns. It returns a Problem where there is none.
func onNode(
	found []target.Server, of v1alpha1.FaultType, node string,
) ([]target.Server, error) {
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
		return nil, problem.NoTarget(
			"spec.action.%s%s.node: no server of the target is on node %s: %s", strings.ToLower(string(of[:1])),
			of[1:], node, strings.Join(others, ", "))
	}
	return there, nil
}

// Unprotected refuses a namespace whose owner forbids faults.
func Unprotected(ctx context.Context, live client.Reader, name string) error {
	namespace := &corev1.Namespace{}
	err := live.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("read namespace %s: %w", name, err)
	}
	if !v1alpha1.SwitchedOn(namespace.Annotations, v1alpha1.AnnotationProtected) {
		return nil
	}
	return &problem.Problem{
		Reason:  v1alpha1.ReasonProtected,
		Lasting: true,
		Message: fmt.Sprintf("namespace %s has the annotation %s: no fault may be injected there",
			name, v1alpha1.AnnotationProtected),
	}
}

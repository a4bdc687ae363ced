package volume

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	pods "github.com/redquake/redquake/internal/fault/pod"
	"github.com/redquake/redquake/internal/problem"
)

// volumeLoss deletes the claims of a pod, then the pod: its StatefulSet makes both anew, and the
// server begins without data. The API server keeps a claim until no pod uses it.
type volumeLoss struct {
	contract.Deps
	contract.Instant
}

func newVolumeLoss(_ *v1alpha1.RedisFaultSpec, deps contract.Deps) contract.Injector {
	return volumeLoss{Deps: deps}
}

// lostRecord is the record of a pod whose claims are deleted.
type lostRecord struct {
	Claims []lostClaim `json:"claims"`
}

// lostClaim is a claim that is deleted.
type lostClaim struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

func (r lostRecord) String() string {
	names := make([]string, len(r.Claims))
	for i := range r.Claims {
		names[i] = r.Claims[i].Name
	}
	return strings.Join(names, ", ")
}

func (v volumeLoss) Traits() contract.Traits {
	return contract.Traits{
		EndsServer: true,
		Abrupt:     true,
		Empties:    true,
		NewPod:     true,
		Silences:   true,
		WholePod:   true,
	}
}

// Preflight finds the claims that the StatefulSet of the pod has made, and would make again.
func (v volumeLoss) Preflight(ctx context.Context, target *v1alpha1.FaultTarget) error {
	pod, err := v.Pod(ctx, target.Pod)
	if err != nil {
		return err
	}
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != "StatefulSet" {
		return problem.Unsupported("pod %s does not belong to a StatefulSet: nobody would make its claims again", pod.Name)
	}
	set := &appsv1.StatefulSet{}
	if err := v.Live.Get(ctx, client.ObjectKey{Namespace: v.Namespace, Name: owner.Name}, set); err != nil {
		return fmt.Errorf("read StatefulSet %s: %w", owner.Name, err)
	}
	var r lostRecord
	for _, template := range set.Spec.VolumeClaimTemplates {
		claim := &corev1.PersistentVolumeClaim{}
		name := template.Name + "-" + pod.Name
		if !slices.Contains(claimsOf(pod, target.Container), name) {
			continue
		}
		err := v.Live.Get(ctx, client.ObjectKey{Namespace: v.Namespace, Name: name}, claim)
		if err != nil {
			return fmt.Errorf("read claim %s: %w", name, err)
		}
		r.Claims = append(r.Claims, lostClaim{Name: name, UID: claim.UID})
	}
	if len(r.Claims) == 0 {
		return problem.Unsupported("pod %s has no volume of spec.volumeClaimTemplates of StatefulSet %s: "+
			"PodKill shows how it comes back", pod.Name, set.Name)
	}
	return contract.Save(target, r)
}

// Begun is true once a claim is being deleted, as nothing could take that back, or the pod is.
func (v volumeLoss) Begun(ctx context.Context, target *v1alpha1.FaultTarget) (bool, error) {
	r, _, err := contract.Load[lostRecord](target)
	if err != nil {
		return false, err
	}
	for _, claim := range r.Claims {
		left, err := v.left(ctx, claim)
		if err != nil {
			return false, err
		}
		if left == nil || left.DeletionTimestamp != nil {
			return true, nil
		}
	}
	return pods.Ended(ctx, v.Deps, target)
}

// Inject deletes the recorded claims, by their UIDs, and then the pod. In the other order the
// StatefulSet would give the replacement the old claims.
func (v volumeLoss) Inject(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (contract.Progress, error) {
	r, _, err := contract.Load[lostRecord](target)
	if err != nil {
		return contract.Progress{}, err
	}
	// a pod that somebody else has replaced has claims that are none of ours
	ended, err := pods.Ended(ctx, v.Deps, target)
	if ended || err != nil {
		return contract.Progress{}, err
	}
	for _, claim := range r.Claims {
		err := pods.IgnoreGone(v.Cluster.Delete(ctx,
			&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: v.Namespace, Name: claim.Name}},
			client.Preconditions{UID: &claim.UID}))
		if err != nil {
			return contract.Progress{}, fmt.Errorf("delete claim %s: %w", claim.Name, err)
		}
	}
	return contract.Progress{}, pods.RemoveTarget(ctx, v.Deps, target)
}

// Effect is confirmed once the pod and its claims are gone or others; the evidence has how many keys
// the new server has, and the other copies.
func (v volumeLoss) Effect(
	ctx context.Context, target *v1alpha1.FaultTarget,
) (v1alpha1.Effect, string) {
	r, _, err := contract.Load[lostRecord](target)
	if err != nil {
		return contract.Unseen(err)
	}
	effect, evidence := pods.Kill{Deps: v.Deps}.Effect(ctx, target)
	if effect != v1alpha1.EffectConfirmed {
		return effect, evidence
	}
	for _, claim := range r.Claims {
		left, err := v.left(ctx, claim)
		switch {
		case err != nil:
			return contract.Unseen(err)
		case left != nil && left.DeletionTimestamp != nil:
			return contract.Inconclusive("claim %s (%s) is still being deleted", claim.Name, claim.UID)
		case left != nil:
			return contract.NotObserved("claim %s (%s) is still there", claim.Name, claim.UID)
		}
	}
	return contract.Confirmed("%s; its former claims are gone (%s); %s", evidence, r, v.keys(ctx, target))
}

// keys says how many keys the servers of the target's data have now: who has copied the emptiness.
func (v volumeLoss) keys(ctx context.Context, target *v1alpha1.FaultTarget) string {
	var said []string
	for _, name := range append([]string{target.Pod}, target.Copies...) {
		count, err := v.keysOf(ctx, name)
		switch {
		case err != nil:
			said = append(said, name+" does not answer")
		default:
			said = append(said, fmt.Sprintf("%s has %d keys", name, count))
		}
	}
	return strings.Join(said, ", ")
}

func (v volumeLoss) keysOf(ctx context.Context, name string) (count int, err error) {
	pod, err := v.Pod(ctx, name)
	if err != nil {
		return 0, err
	}
	info, err := v.Info(ctx, v.Address(pod), "keyspace")
	if err != nil {
		return 0, err
	}
	for field := range info {
		var keys int
		if _, err := fmt.Sscan(info.Pairs(field)["keys"], &keys); err == nil && strings.HasPrefix(field, "db") {
			count += keys
		}
	}
	return count, nil
}

// left is a recorded claim; nil = it is gone, or another one has its name.
func (v volumeLoss) left(
	ctx context.Context, claim lostClaim,
) (*corev1.PersistentVolumeClaim, error) {
	found := &corev1.PersistentVolumeClaim{}
	err := v.Live.Get(ctx, client.ObjectKey{Namespace: v.Namespace, Name: claim.Name}, found)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // there is none
	case err != nil:
		return nil, fmt.Errorf("read claim %s: %w", claim.Name, err)
	case found.UID != claim.UID:
		return nil, nil //nolint:nilnil // another one
	}
	return found, nil
}

func (v volumeLoss) Describe(target *v1alpha1.FaultTarget) contract.Description {
	return contract.DescribeRecord(target, func(r lostRecord) contract.Description {
		return contract.Description{
			Action: fmt.Sprintf("delete the claims %s with their data, and pod %s without grace period", r, target.Pod),
			SelfEnding: "the StatefulSet makes the claims and the pod again, without data; nothing brings the data back, " +
				"unless the volumes are retained",
		}
	})
}

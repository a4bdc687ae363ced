package redisloadtest

import (
	"context"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisloadtest/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/target"
)

// prepare creates the missing children: the credentials, the plan, the Job. It fails while an old
// Job is being deleted.
func (r *Reconciler) prepare(ctx context.Context, s *scope.Test) state.Outcome {
	if s.Stale {
		return state.Outcome{Again: true, Err: r.discard(ctx, s)}
	}
	credentials, err := agent.NewCredentials()
	if err != nil {
		return state.Outcome{Err: fmt.Errorf("make credentials for the load pods: %w", err)}
	}
	stored, err := children.PlanConfigMap(s.Test, s.Plan)
	if err != nil {
		return state.Outcome{Err: fmt.Errorf("encode the plan: %w", err)}
	}
	ids, err := r.userIDs(ctx, s.Test.Namespace)
	if err != nil {
		return state.Outcome{Err: err}
	}
	job := children.LoadJob(s.Test, stored.Name, r.Image, ids)
	job.Annotations[v1alpha1.AnnotationAddresses] = addressesOf(s.Plan)
	for _, child := range []client.Object{children.AgentSecret(s.Test, credentials), stored, job} {
		err := r.createOwned(ctx, s.Test, child)
		// of fields that only Kubernetes checks, such as affinity
		_, isJob := child.(*batchv1.Job)
		if isJob && apierrors.IsInvalid(err) {
			return r.endFailed(ctx, s, &problem.Problem{
				Reason:  v1alpha1.ReasonInvalidSpec,
				Message: refusedJob(err),
				Lasting: true,
			})
		}
		if err != nil {
			return state.Outcome{Err: err}
		}
	}
	log.FromContext(ctx).Info("Prepared", "loadPods", s.Plan.Pods, "job",
		children.LoadJobName(s.Test.Name))
	return state.Outcome{}
}

// addressesOf is the value of AnnotationAddresses.
func addressesOf(p *plan.Plan) string {
	return strings.Join(p.Target.Addresses, ",")
}

// userIDs are who chooses the user of the load pods.
func (r *Reconciler) userIDs(ctx context.Context, namespace string) (children.UserIDs, error) {
	// a cache of namespaces takes rights on all
	assigned, err := target.AssignsUserIDs(ctx, r.APIReader, namespace)
	return children.UserIDs(assigned), err
}

// createOwned creates a child if it does not exist. It fails if an object of the same name has
// another owner, such as a deleted test of the same name.
func (r *Reconciler) createOwned(ctx context.Context, owner, child client.Object) error {
	found := child.DeepCopyObject().(client.Object)
	err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(child), found)
	if apierrors.IsNotFound(err) {
		if err := r.Client.Create(ctx, child); err != nil {
			return fmt.Errorf("create %s: %w", describe(child), err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", describe(child), err)
	}
	if why := taken(found, owner); why != "" {
		return fmt.Errorf("create %s: the name is taken: %s", describe(child), why)
	}
	return nil
}

// refusedJob says which field to change after a refusal of the Job: by a policy of the cluster,
// most of which want labels, or by the API server itself.
func refusedJob(err error) string {
	if strings.Contains(err.Error(), " denied ") { // by a ValidatingAdmissionPolicy or a webhook
		return fmt.Sprintf(
			"spec.pods: a policy of the cluster refuses the Job. Labels of the Job are in jobLabels, those of its pods in labels: %v",
			err)
	}
	return fmt.Sprintf("spec.pods: %v", err)
}

// taken is why an object is not the child of an owner, and what can be done; "" if it is.
func taken(found, owner client.Object) string {
	of := metav1.GetControllerOf(found)
	switch {
	case found.GetDeletionTimestamp() != nil:
		return "an earlier object is being deleted"
	case of == nil:
		return "the object there has no owner, as after kubectl delete --cascade=orphan. Delete it, or choose another name"
	case of.UID == owner.GetUID():
		return ""
	case of.Name == owner.GetName():
		return fmt.Sprintf(
			"the object there belongs to an earlier %s %s (%s). It will be deleted if that is; else "+
				"delete it, or choose another name", of.Kind, of.Name, of.UID)
	}
	return fmt.Sprintf("the object there belongs to %s %s. Choose another name", of.Kind, of.Name)
}

// start stores the start instant and then sends it. It is far enough in the future to reach all
// pods.
func (r *Reconciler) start(ctx context.Context, s *scope.Test) state.Outcome {
	at := r.Clock.Now().Add(lifecycle.StartLead)
	// The status has microseconds; the instant that is sent must be equal.
	at = at.Add(-time.Duration(at.Nanosecond() % 1000))
	s.Test.Status.StartTime, s.Test.Status.Search = &metav1.MicroTime{Time: at}, nil
	s.Test.Status.Seed = new(int64(s.Plan.Workload.Seed))
	s.Seen.StartedAt = at
	setTarget(s)
	if err := r.storeStatus(ctx, s); err != nil {
		return state.Outcome{Err: err}
	}
	log.FromContext(ctx).Info("Starting", "at", at, "loadPods", s.Plan.Pods)
	if s.Started() { // with an instant that no pod has received: open another session with the new one
		r.Runs.Drop(s.Test.UID)
		s.Run = nil
		return state.Outcome{Again: true}
	}
	return r.resend(ctx, s)
}

// resend sends the stored start instant.
func (r *Reconciler) resend(ctx context.Context, s *scope.Test) state.Outcome {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := s.Run.Session.Start(ctx, s.Seen.StartedAt)
	if err != nil {
		return state.Outcome{Err: fmt.Errorf("send the start instant to the load pods: %w", err)}
	}
	return state.Outcome{Again: true}
}

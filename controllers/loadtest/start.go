package loadtest

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/lifecycle"
)

// prepare makes what is missing: the credentials, the plan, the Job. A Job that is still going away is waited for.
func (r *Reconciler) prepare(ctx context.Context, s *scope) outcome {
	if s.stale {
		return outcome{again: true, err: r.discard(ctx, s)}
	}
	credentials, err := agent.NewCredentials()
	if err != nil {
		return outcome{err: fmt.Errorf("make credentials for the load pods: %w", err)}
	}
	plan, err := children.PlanConfigMap(s.test, s.plan)
	if err != nil {
		return outcome{err: fmt.Errorf("encode the plan: %w", err)}
	}
	for _, child := range []client.Object{children.AgentSecret(s.test, credentials), plan, children.LoadJob(s.test, r.Image)} {
		if err := r.createOwned(ctx, s.test, child); err != nil {
			return outcome{err: fmt.Errorf("create %T %s: %w", child, child.GetName(), err)}
		}
	}
	log.FromContext(ctx).Info("Prepared", "loadPods", s.plan.Pods, "job", children.LoadJobName(s.test.Name))
	return outcome{}
}

// createOwned creates a child, or finds it made. One of the same name that belongs to another object, such as a deleted test of
// the same name, must go first.
func (r *Reconciler) createOwned(ctx context.Context, owner, child client.Object) error {
	found := child.DeepCopyObject().(client.Object)
	err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(child), found)
	if apierrors.IsNotFound(err) {
		return r.Client.Create(ctx, child)
	}
	if err != nil {
		return err
	}
	if !metav1.IsControlledBy(found, owner) || found.GetDeletionTimestamp() != nil {
		return fmt.Errorf("%T %s belongs to another object or is being deleted: waiting until it is gone", child, child.GetName())
	}
	return nil
}

// start stores the start instant and then sends it. The instant lies far enough ahead for all pods to be told.
func (r *Reconciler) start(ctx context.Context, s *scope) outcome {
	at := r.Clock.Now().Add(lifecycle.StartLead)
	// What is stored has microseconds: what is sent must be the same instant.
	at = at.Add(-time.Duration(at.Nanosecond() % 1000))
	s.test.Status.StartTime, s.test.Status.Search = &metav1.MicroTime{Time: at}, nil
	s.seen.StartedAt = at
	s.setTarget()
	if err := r.storeStatus(ctx, s); err != nil {
		return outcome{err: err}
	}
	log.FromContext(ctx).Info("Starting", "at", at, "loadPods", s.plan.Pods)
	if s.run.Begun() { // the session holds an instant that passed unsent: another one takes up the new instant
		r.Runs.Drop(s.test.UID)
		s.run = nil
		return outcome{again: true}
	}
	return r.resend(ctx, s)
}

func (r *Reconciler) resend(ctx context.Context, s *scope) outcome {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := s.run.Session.Start(ctx, s.seen.StartedAt); err != nil {
		return outcome{err: fmt.Errorf("send the start instant to the load pods: %w", err)}
	}
	s.run.Begin()
	return outcome{again: true}
}

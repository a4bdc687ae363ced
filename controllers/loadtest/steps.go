package loadtest

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/problem"
)

// talkTimeout bounds what one reconcile says to the load pods: a pod that does not answer must not hold the others' tests.
const talkTimeout = 5 * time.Second

// storePatience is how long a finished test tries to store its record.
const storePatience = 2 * time.Minute

// outcome is what a step came to.
type outcome struct {
	again   bool             // look again at once
	deleted bool             // the object is no more
	problem *problem.Problem // found by the step: shown, and tried again
	ended   bool             // the object is over: figures and conditions are final
	failed  bool             // with ended: it failed
	err     error            // try again later
}

// perform does the one thing that was decided.
func (r *Reconciler) perform(ctx context.Context, s *scope, d lifecycle.Decision[lifecycle.LoadTestAction]) outcome {
	r.loseForGood(s)
	switch d.Action {
	case lifecycle.LoadTestPrepare:
		return r.prepare(ctx, s)
	case lifecycle.LoadTestStart:
		return r.start(ctx, s)
	case lifecycle.LoadTestResend:
		return r.resend(ctx, s)
	case lifecycle.LoadTestStep:
		return r.step(ctx, s)
	case lifecycle.LoadTestStop:
		return r.stop(ctx, s)
	case lifecycle.LoadTestFinish, lifecycle.LoadTestFail:
		// The end deletes pods. Were its status refused then, the next look would take them for lost.
		if old, err := state.IsStale(ctx, r.Live, "RedisLoadTest", s.before); old || err != nil {
			return outcome{again: true, err: client.IgnoreNotFound(err)}
		}
		if d.Action == lifecycle.LoadTestFail {
			return r.fail(ctx, s)
		}
		return r.finish(ctx, s)
	case lifecycle.LoadTestSuspend:
		return r.suspend(ctx, s)
	case lifecycle.LoadTestExpire:
		return r.expire(ctx, s)
	}
	return outcome{}
}

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
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(child), found)
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
	ctx, cancel := context.WithTimeout(ctx, talkTimeout)
	defer cancel()
	if err := s.run.Session.Start(ctx, s.seen.StartedAt); err != nil {
		return outcome{err: fmt.Errorf("send the start instant to the load pods: %w", err)}
	}
	s.run.Begin()
	return outcome{again: true}
}

// stop tells the pods to end the load; their records are pulled as at a normal end.
func (r *Reconciler) stop(ctx context.Context, s *scope) outcome {
	ctx, cancel := context.WithTimeout(ctx, talkTimeout)
	defer cancel()
	if err := s.run.Session.Stop(ctx); err != nil {
		return outcome{err: fmt.Errorf("stop the load pods: %w", err)}
	}
	s.run.Stopped = true
	log.FromContext(ctx).Info("Stopped", "aborted", s.seen.Abort)
	return outcome{again: true}
}

// loseForGood tells the session which pods will not come back, so that the record of the others can be completed.
func (r *Reconciler) loseForGood(s *scope) {
	for index := range s.lost {
		s.run.Session.Lose(index)
	}
}

// finish stores the record and lets the pods go; the figures follow in the status.
func (r *Reconciler) finish(ctx context.Context, s *scope) outcome {
	if s.run == nil || !s.run.Begun() {
		if err := r.deleteJob(ctx, s); err != nil {
			return outcome{err: err}
		}
		return outcome{ended: true}
	}
	talk, cancel := context.WithTimeout(ctx, talkTimeout)
	defer cancel()
	err := s.run.Session.Release(talk)
	if why := s.run.Session.Status().StoreError; err != nil && why != "" {
		if r.Clock.Since(s.run.EndedAt) < storePatience {
			return outcome{err: err} // without the record there is no result: try again
		}
		return r.giveUp(ctx, s, &problem.Problem{Reason: v1alpha1.ReasonResultsNotStorable, Message: fmt.Sprintf("ConfigMap %s: %s", children.ResultsName(s.test.Name), why)})
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to release a load pod")
	}
	if s.seen.Abort || len(s.lost) > 0 { // a pod that counts as lost may still load Redis
		if err := r.deleteJob(ctx, s); err != nil {
			return outcome{err: err}
		}
	}
	log.FromContext(ctx).Info("Finished", "lostPods", len(s.lost))
	return outcome{ended: true}
}

// fail ends the load and stores what there is. What cannot be done any more is let be: the Job's deletion ends the pods in any case.
func (r *Reconciler) fail(ctx context.Context, s *scope) outcome {
	if s.run != nil && s.run.Begun() {
		for _, tell := range []func(context.Context) error{s.run.Session.Stop, s.run.Session.Release} {
			talk, cancel := context.WithTimeout(ctx, talkTimeout)
			if err := tell(talk); err != nil {
				log.FromContext(ctx).Error(err, "Failed to end the load of a failed test in every load pod")
			}
			cancel()
		}
	}
	return r.giveUp(ctx, s, nil)
}

func (r *Reconciler) giveUp(ctx context.Context, s *scope, why *problem.Problem) outcome {
	if err := r.deleteJob(ctx, s); err != nil {
		return outcome{err: err}
	}
	log.FromContext(ctx).Info("Failed")
	return outcome{ended: true, failed: true, problem: why}
}

// suspend forgets the run, as a suspended Job forgets its pods.
func (r *Reconciler) suspend(ctx context.Context, s *scope) outcome {
	if err := r.discard(ctx, s); err != nil {
		return outcome{err: err}
	}
	s.forget()
	log.FromContext(ctx).Info("Suspended")
	return outcome{}
}

// discard deletes the load pods with their plan and their record. The credentials stay: they belong to the test, not to a run of it.
func (r *Reconciler) discard(ctx context.Context, s *scope) error {
	r.Runs.Drop(s.test.UID) // first: it would store the record again
	s.run = nil
	if err := r.deleteJob(ctx, s); err != nil {
		return err
	}
	for _, name := range []string{children.ResultsName(s.test.Name), children.PlanName(s.test.Name)} {
		if err := r.deleteOwned(ctx, s.test, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.test.Namespace, Name: name}}); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) expire(ctx context.Context, s *scope) outcome {
	uid := s.test.UID
	err := r.Client.Delete(ctx, s.test, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	return outcome{deleted: true, err: client.IgnoreNotFound(err)}
}

func (r *Reconciler) deleteJob(ctx context.Context, s *scope) error {
	return r.deleteOwned(ctx, s.test, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: s.test.Namespace, Name: children.LoadJobName(s.test.Name)}})
}

// deleteOwned deletes a child, if it is there and is the owner's: a name alone proves nothing.
func (r *Reconciler) deleteOwned(ctx context.Context, owner, child client.Object) error {
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(child), child); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(child, owner) {
		return nil
	}
	uid := child.GetUID()
	return client.IgnoreNotFound(r.Client.Delete(ctx, child, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

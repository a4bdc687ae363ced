package redisloadtest

import (
	"context"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisloadtest/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/problem"
)

// The cleanup is asked for until all pods have done their part, or the limit, which is below
// agent.DefaultLinger, has passed.
const (
	cleanupPoll  = time.Second
	cleanupLimit = 10 * time.Minute
)

// storeTimeout is how long a finished test retries to store its record.
const storeTimeout = 2 * time.Minute

// stop ends the load in the pods; their records are pulled as at a normal end. Unless it is
// aborted, so are their ledgers read back.
func (r *Reconciler) stop(ctx context.Context, s *scope.Test) state.Outcome {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	end, ended := s.Run.Session.End, &s.Run.Ended
	if s.Seen.Abort {
		end, ended = s.Run.Session.Stop, &s.Run.Stopped
	}
	if err := end(ctx); err != nil {
		return state.Outcome{Err: fmt.Errorf("stop the load pods: %w", err)}
	}
	*ended = true
	log.FromContext(ctx).Info("Stopped", "aborted", s.Seen.Abort)
	return state.Outcome{Again: true}
}

// finish stores the record and releases the pods; the figures follow in the status.
func (r *Reconciler) finish(ctx context.Context, s *scope.Test) state.Outcome {
	if s.Run == nil || !s.Run.Begun() {
		if err := r.deleteJob(ctx, s); err != nil {
			return state.Outcome{Err: err}
		}
		return state.Outcome{Ended: true}
	}
	if !s.Seen.Abort {
		if waits := r.cleanUp(ctx, s); waits != nil {
			return state.Outcome{Problem: waits, After: cleanupPoll}
		}
	}
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := s.Run.Session.Release(callCtx)
	why := s.Run.Session.StoreError()
	if err != nil && why != nil {
		if r.Clock.Since(s.Run.EndedAt) < storeTimeout {
			// without the record there is no result: retry
			return state.Outcome{Err: fmt.Errorf("release the load pods: %w", err)}
		}
		return r.endFailed(ctx, s, &problem.Problem{
			Reason:  v1alpha1.ReasonResultsNotStorable,
			Message: fmt.Sprintf("ConfigMap %s: %v", children.ResultsName(s.Test.Name), why),
		})
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "Failed to release a load pod")
	}
	if s.Seen.Abort || len(s.Lost) > 0 { // a pod that counts as lost may still be loading Redis
		if err := r.deleteJob(ctx, s); err != nil {
			return state.Outcome{Err: err}
		}
	}
	log.FromContext(ctx).Info("Finished", "lostPods", len(s.Lost))
	return state.Outcome{Ended: true}
}

// cleanUp has the load pods remove the keys of the load, if the test says so. It returns what that
// waits for; nil once they have done it, or will not. All of them have ended: none creates a key
// again.
func (r *Reconciler) cleanUp(ctx context.Context, s *scope.Test) *problem.Problem {
	if !s.Plan.Workload.Keyspace.Cleanup {
		return nil
	}
	if s.Run.CleaningSince.IsZero() {
		s.Run.CleaningSince = r.Clock.Now()
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := s.Run.Session.CleanUp(ctx)
	if err == nil {
		return nil
	}
	if r.Clock.Since(s.Run.CleaningSince) < cleanupLimit {
		return &problem.Problem{
			Reason:  v1alpha1.ReasonCleaningUp,
			Message: "the load has ended: " + digest.Truncate(err.Error(), 512),
		}
	}
	log.FromContext(ctx).Error(err, "Keys of the load may be left")
	return nil
}

// fail ends the load and stores the record so far. Errors are logged only: the deletion of the Job
// ends the pods in any case.
func (r *Reconciler) fail(ctx context.Context, s *scope.Test) state.Outcome {
	if s.Started() {
		for _, call := range []func(context.Context) error{s.Run.Session.Stop, s.Run.Session.Release} {
			callCtx, cancel := context.WithTimeout(ctx, callTimeout)
			if err := call(callCtx); err != nil {
				log.FromContext(ctx).Error(err, "Failed to end the load of a failed test in every load pod")
			}
			cancel()
		}
	}
	return r.endFailed(ctx, s, nil)
}

// endFailed deletes the load pods and ends the test as failed.
func (r *Reconciler) endFailed(
	ctx context.Context, s *scope.Test, why *problem.Problem,
) state.Outcome {
	if err := r.deleteJob(ctx, s); err != nil {
		return state.Outcome{Err: err}
	}
	log.FromContext(ctx).Info("Failed")
	return state.Outcome{
		Ended:   true,
		Failed:  true,
		Problem: why,
	}
}

// suspend discards the run, as a suspended Job deletes its pods.
func (r *Reconciler) suspend(ctx context.Context, s *scope.Test) state.Outcome {
	if err := r.discard(ctx, s); err != nil {
		return state.Outcome{Err: err}
	}
	resetStatus(s)
	log.FromContext(ctx).Info("Suspended")
	return state.Outcome{}
}

// discard deletes the load pods, their plan and their record. The credentials are kept: they belong
// to the test, not to one run.
func (r *Reconciler) discard(ctx context.Context, s *scope.Test) error {
	r.Runs.Drop(s.Test.UID) // first: an open session would store the record again
	s.Run = nil
	job := loadJob(s.Test)
	if err := r.deleteOwned(ctx, s.Test, job); err != nil {
		return err
	}
	for _, name := range []string{children.ResultsName(s.Test.Name), children.PlanOf(job)} {
		if name == "" { // there is no Job
			continue
		}
		err := r.deleteOwned(ctx, s.Test, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.Test.Namespace, Name: name},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) deleteJob(ctx context.Context, s *scope.Test) error {
	return r.deleteOwned(ctx, s.Test, loadJob(s.Test))
}

// loadJob is the Job of a test, to be read.
func loadJob(test *v1alpha1.RedisLoadTest) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: test.Namespace, Name: children.LoadJobName(test.Name)},
	}
}

// deleteOwned reads a child, and deletes it if it exists and is controlled by the owner: another
// object may have its name.
func (r *Reconciler) deleteOwned(ctx context.Context, owner, child client.Object) error {
	err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(child), child)
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("read %s: %w", describe(child), err)
	}
	if !metav1.IsControlledBy(child, owner) {
		return nil
	}
	uid := child.GetUID()
	err = r.Client.Delete(ctx, child, client.Preconditions{UID: &uid},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", describe(child), err)
	}
	return nil
}

// describe returns the kind and the name of a child.
func describe(child client.Object) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", child), "*v1.") + " " + child.GetName()
}

package schedule

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/digest"
)

// +kubebuilder:rbac:groups="",resources=secrets,verbs=get

// Notifier notifies people of what has changed in the verdicts of a schedule. It has workers of its
// own, so that no run waits for a server that does not answer, and writes nothing but its condition
// and status.notification.
type Notifier struct {
	*Reconciler

	mu      sync.Mutex
	unsaved map[types.NamespacedName]report // what was sent, and could not be stored
}

// NewNotifier returns a notifier.
func NewNotifier(r *Reconciler) *Notifier {
	return &Notifier{Reconciler: r, unsaved: map[types.NamespacedName]report{}}
}

// report is the outcome of a look at a schedule, as its status shows it.
type report struct {
	uid          types.UID
	generation   int64 // that was looked at
	notification *v1alpha1.ScheduleNotification
	condition    *condition // nil = it stays as it is
	event        *notice    // nil = none
	again        time.Time  // when to look again; zero = after a change
}

// Reconcile notifies of what has changed since the last notification, if that is due. It reads past
// the cache, which may not contain yet that this was done.
func (n *Notifier) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	e := &v1alpha1.RedisExperimentSchedule{}
	err := n.APIReader.Get(ctx, request.NamespacedName, e)
	switch {
	case apierrors.IsNotFound(err):
		n.keep(request.NamespacedName, nil)
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("read the schedule: %w", err)
	case !Notifies(e) || e.DeletionTimestamp != nil:
		return ctrl.Result{}, nil
	}
	sent, kept := n.kept(request.NamespacedName)
	if kept && sent.uid == e.UID {
		err := n.save(ctx, request.NamespacedName, sent)
		if err != nil {
			return ctrl.Result{}, err
		}
		return state.Requeue(true, time.Time{}, n.Clock.Now()), nil
	}
	done, err := n.look(ctx, e)
	if err != nil {
		return ctrl.Result{}, err
	}
	err = n.save(ctx, request.NamespacedName, done)
	if err != nil {
		return ctrl.Result{}, err
	}
	return state.Requeue(false, done.again, n.Clock.Now()), nil
}

// Notifies reports whether a schedule notifies, or has notified.
func Notifies(e *v1alpha1.RedisExperimentSchedule) bool {
	return e.Spec.Notify != nil ||
		meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionNotified) != nil
}

// save writes a report into the status. What cannot be written is kept: it is not sent again while
// this process runs.
func (n *Notifier) save(ctx context.Context, key types.NamespacedName, done report) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		e := &v1alpha1.RedisExperimentSchedule{}
		if err := n.APIReader.Get(ctx, key, e); err != nil {
			return err
		}
		if e.UID != done.uid {
			return nil
		}
		before := e.DeepCopy()
		done.into(e)
		if equality.Semantic.DeepEqual(before.Status, e.Status) {
			return nil
		}
		return n.Client.Status().Patch(ctx, e, state.OptimisticPatch(before))
	})
	if apierrors.IsNotFound(err) {
		n.keep(key, nil)
		return nil
	}
	if err != nil {
		n.keep(key, &done)
		return fmt.Errorf("store the notification: %w", err)
	}
	n.keep(key, nil)
	if done.event != nil {
		of := &v1alpha1.RedisExperimentSchedule{}
		of.Namespace, of.Name, of.UID = key.Namespace, key.Name, done.uid
		n.Recorder.Eventf(of, nil, done.event.kind, done.event.reason, "Notify", "%s",
			digest.Truncate(done.event.message, 1000))
	}
	return nil
}

// into changes a status as the report says. What was looked at may have changed meanwhile.
func (done report) into(e *v1alpha1.RedisExperimentSchedule) {
	if e.Spec.Notify == nil {
		meta.RemoveStatusCondition(&e.Status.Conditions, v1alpha1.ConditionNotified)
		done.notification, done.condition = nil, nil
	}
	e.Status.Notification = done.notification
	if c := done.condition; c != nil {
		state.SetCondition(&e.Status.Conditions, done.generation, v1alpha1.ConditionNotified, c.is,
			c.reason, c.message)
	}
}

// keep remembers what could not be stored; nil = nothing.
func (n *Notifier) keep(key types.NamespacedName, done *report) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if done == nil {
		delete(n.unsaved, key)
		return
	}
	n.unsaved[key] = *done
}

func (n *Notifier) kept(key types.NamespacedName) (report, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	done, ok := n.unsaved[key]
	return done, ok
}

// SetupWithManager registers the controller.
func (n *Notifier) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.RedisExperimentSchedule{},
			builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
				e, ok := o.(*v1alpha1.RedisExperimentSchedule)
				return ok && Notifies(e)
			}))).
		Named("redisexperimentschedule-notifier").
		WithOptions(options).
		Complete(reconcile.Reconciler(n))
}

// notice is an event about a notification.
type notice struct{ kind, reason, message string }

func warning(reason, message string) *notice {
	return &notice{corev1.EventTypeWarning, reason, message}
}

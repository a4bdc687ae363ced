// Package controllers reconciles the objects of redquake.dev. Each reconcile reads everything first, lets package lifecycle decide,
// does one thing, and writes the status once.
package controllers

import (
	"context"
	"errors"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/runs"
)

// RedisLoadTestReconciler runs load tests.
type RedisLoadTestReconciler struct {
	Client   client.Client
	Live     client.Reader // reads past the cache
	Recorder events.EventRecorder
	Clock    clock.PassiveClock
	Runs     *runs.Registry
	Image    string // of the load pods, unless the test names one
}

// +kubebuilder:rbac:groups=redquake.dev,resources=redisloadtests,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=redquake.dev,resources=redisloadtests/status,verbs=get;patch
// +kubebuilder:rbac:groups=redquake.dev,resources=redisloadtests/finalizers,verbs=update
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;create;update;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create
// +kubebuilder:rbac:groups="",resources=services,verbs=get
// +kubebuilder:rbac:groups="",resources=events,verbs=list
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=list
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile brings one load test a step further.
func (r *RedisLoadTestReconciler) Reconcile(ctx context.Context, request ctrl.Request) (result ctrl.Result, err error) {
	scope, err := r.observe(ctx, request.NamespacedName)
	if errors.Is(err, errOld) {
		return ctrl.Result{RequeueAfter: staleRetry}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	if scope == nil { // gone; its children go with it
		return ctrl.Result{}, nil
	}
	now := r.Clock.Now()
	decision := lifecycle.NextForLoadTest(scope.seen, now)
	outcome := r.perform(ctx, scope, decision)
	if outcome.deleted {
		return ctrl.Result{}, outcome.err
	}
	if err := r.report(ctx, scope, decision, outcome); err != nil {
		return refused(err)
	}
	return requeue(outcome.again, decision.Until, r.Clock.Now()), outcome.err
}

// SetupWithManager registers the controller: it looks again when a load pod or the Job of a test changes, and when a fault does
// that refers to it.
func (r *RedisLoadTestReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.RedisLoadTest{}).
		Owns(&batchv1.Job{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(loadTestOfPod)).
		Watches(&v1alpha1.RedisFault{}, handler.EnqueueRequestsFromMapFunc(loadTestOfFault)).
		Named("redisloadtest").
		WithOptions(options()).
		Complete(r)
}

func loadTestOfPod(_ context.Context, pod client.Object) []reconcile.Request {
	test := pod.GetLabels()[v1alpha1.LabelLoadTest]
	if test == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: test}}}
}

func loadTestOfFault(_ context.Context, object client.Object) []reconcile.Request {
	fault, ok := object.(*v1alpha1.RedisFault)
	if !ok || fault.Status.LoadTest == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: fault.Namespace, Name: fault.Status.LoadTest}}}
}

// requeue turns the instant at which to look again into controller-runtime's terms: at once where a step asked for it.
func requeue(again bool, until, now time.Time) ctrl.Result {
	if again {
		return ctrl.Result{RequeueAfter: time.Millisecond}
	}
	if until.IsZero() {
		return ctrl.Result{}
	}
	return ctrl.Result{RequeueAfter: max(until.Sub(now), time.Millisecond)}
}

// gone drops the session of a test that is no longer there.
func (r *RedisLoadTestReconciler) gone(ctx context.Context) error {
	var tests v1alpha1.RedisLoadTestList
	if err := r.Client.List(ctx, &tests); err != nil {
		return err
	}
	keep := map[types.UID]bool{}
	for i := range tests.Items {
		if tests.Items[i].DeletionTimestamp == nil {
			keep[tests.Items[i].UID] = true
		}
	}
	r.Runs.Retain(keep)
	return nil
}

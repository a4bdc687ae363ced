package sim_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/sim"
)

func newAPI(t *testing.T) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return sim.NewAPI(scheme)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What a real API server sets, this one sets too.
func TestObjectsGetWhatTheServerSets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI(t)
		time.Sleep(90 * time.Second)
		test := &v1alpha1.RedisLoadTest{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "run"},
			Status:     v1alpha1.RedisLoadTestStatus{Progress: 7},
		}
		test.Spec.Workload.Commands = []v1alpha1.WorkloadCommand{{Name: "get", Command: []string{"GET", "{key}"}}}
		must(t, api.Create(t.Context(), test))
		if test.UID == "" || test.Generation != 1 || !test.CreationTimestamp.Time.Equal(time.Now()) ||
			test.ResourceVersion == "" || test.Status.Progress != 0 {
			t.Errorf("created %+v, status %+v", test.ObjectMeta, test.Status)
		}
		if test.Spec.Pods.Count != 1 || test.Spec.Pods.StartDeadline.Duration != 5*time.Minute ||
			test.Spec.Workload.Commands[0].Weight != 1 {
			t.Errorf("the defaults of the CRD are missing: %+v", test.Spec)
		}
		stale := test.DeepCopy()
		test.Spec.Abort = true
		must(t, api.Update(t.Context(), test))
		generation := test.Generation
		test.Status.Progress = 50
		must(t, api.Status().Update(t.Context(), test))
		if generation != 2 || test.Generation != 2 || test.UID != stale.UID {
			t.Errorf("generation %d after a change of the spec, %d after one of the status, UID %s", generation, test.Generation,
				test.UID)
		}
		if err := api.Update(t.Context(), stale); !apierrors.IsConflict(err) {
			t.Errorf("an old copy was stored: %v", err)
		}
		uid := types.UID("another")
		if err := api.Delete(t.Context(), test, client.Preconditions{UID: &uid}); !apierrors.IsConflict(err) {
			t.Errorf("deleted by another UID: %v", err)
		}
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "auth"},
			StringData: map[string]string{"password": "x"},
		}
		must(t, api.Create(t.Context(), secret))
		if string(secret.Data["password"]) != "x" || secret.StringData != nil {
			t.Errorf("secret %v, %v", secret.Data, secret.StringData)
		}
	})
}

// A pod on a node stays until its kubelet deletes it; without a node, or without grace, it is deleted at once. A
// finalizer keeps any object.
func TestDeletion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI(t)
		gone := func(o client.Object) bool {
			return apierrors.IsNotFound(api.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		}
		pod := func(name, node string) *corev1.Pod {
			p := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
				Spec:       corev1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: new(int64(5))},
			}
			must(t, api.Create(t.Context(), p))
			return p
		}
		waiting, pending, killed := pod("waiting", "node-1"), pod("pending", ""), pod("killed", "node-1")
		must(t, api.Delete(t.Context(), waiting))
		must(t, api.Delete(t.Context(), pending))
		must(t, api.Delete(t.Context(), killed, client.GracePeriodSeconds(0)))
		if gone(waiting) || !gone(pending) || !gone(killed) {
			t.Error("want the pod on a node to be there, and no other")
		}
		if at := waiting.DeletionTimestamp; at == nil || time.Until(at.Time) != 5*time.Second {
			t.Errorf("deletionTimestamp %v", at)
		}
		must(t, api.Delete(t.Context(), waiting, client.GracePeriodSeconds(0)))
		fault := &v1alpha1.RedisFault{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "kill", Finalizers: []string{v1alpha1.FinalizerFault}},
		}
		must(t, api.Create(t.Context(), fault))
		must(t, api.Delete(t.Context(), fault))
		if !gone(waiting) || gone(fault) {
			t.Error("want the fault to be there, and the pod not")
		}
		fault.Finalizers = nil
		must(t, api.Update(t.Context(), fault))
		if !gone(fault) {
			t.Error("the fault exists without a finalizer")
		}
	})
}

// Objects whose owner was deleted are deleted, too.
func TestGarbage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI(t)
		kubelet := &sim.Kubelet{
			Place:     sim.Place{T: t, Client: api, Namespace: "shop"},
			LookEvery: time.Minute,
			Refuse:    func(int) bool { return true },
		}
		kubelet.Start()
		test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "run"}}
		must(t, api.Create(t.Context(), test))
		owner := []metav1.OwnerReference{*metav1.NewControllerRef(test, v1alpha1.GroupVersion.WithKind("RedisLoadTest"))}
		must(t,
			api.Create(t.Context(), &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "plan", OwnerReferences: owner},
			}))
		must(t, api.Create(t.Context(), &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "load", OwnerReferences: owner},
			Spec: batchv1.JobSpec{Completions: new(int32(2)), Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelLoadTest: "run"}},
			}},
		}))
		count := func(list client.ObjectList) int {
			must(t, api.List(context.Background(), list, client.InNamespace("shop")))
			switch l := list.(type) {
			case *corev1.PodList:
				return len(l.Items)
			case *batchv1.JobList:
				return len(l.Items)
			}
			return len(list.(*corev1.ConfigMapList).Items)
		}
		synctest.Wait()
		if n := count(&corev1.PodList{}); n != 2 {
			t.Errorf("%d pods of the Job, want 2", n)
		}
		must(t, api.Delete(t.Context(), test))
		time.Sleep(time.Second)
		if pods, jobs, maps := count(&corev1.PodList{}), count(&batchv1.JobList{}),
			count(&corev1.ConfigMapList{}); pods+jobs+maps > 0 {
			t.Errorf("%d pods, %d Jobs, %d ConfigMaps are left", pods, jobs, maps)
		}
	})
}

// A patch of a status changes what it names, and nothing but the status. One that names a version meets a conflict if
// the object has changed, another does not.
func TestStatusIsPatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := newAPI(t)
		fault := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "kill"}}
		must(t, api.Create(t.Context(), fault))
		read := func() *v1alpha1.RedisFault {
			f := &v1alpha1.RedisFault{}
			must(t, api.Get(t.Context(), client.ObjectKeyFromObject(fault), f))
			return f
		}
		old := read()
		change := func(from *v1alpha1.RedisFault, patch func(client.Object) client.Patch, f func(
			*v1alpha1.RedisFault,
		),
		) error {
			changed := from.DeepCopy()
			f(changed)
			return api.Status().Patch(t.Context(), changed, patch(from))
		}
		locked := func(o client.Object) client.Patch {
			return client.MergeFromWithOptions(o, client.MergeFromWithOptimisticLock{})
		}
		must(t, change(old, locked, func(f *v1alpha1.RedisFault) {
			f.Status.LoadTest, f.Labels = "first",
				map[string]string{"a": "b"}
		}))
		if err := change(old, locked, func(f *v1alpha1.RedisFault) {
			f.Status.LoadTest = "second"
		}); !apierrors.IsConflict(err) {
			t.Errorf("a patch of an old version: %v", err)
		}
		must(t, change(old, client.MergeFrom, func(f *v1alpha1.RedisFault) { f.Status.LoadTestUID = "u" }))
		if f := read(); f.Status.LoadTest != "first" || f.Status.LoadTestUID != "u" || len(f.Labels) > 0 ||
			f.Generation != old.Generation {
			t.Errorf("%+v %+v", f.ObjectMeta, f.Status)
		}
		gone := old.DeepCopy()
		gone.Name = "other"
		if err := change(gone, client.MergeFrom, func(f *v1alpha1.RedisFault) {
			f.Status.LoadTest = "x"
		}); !apierrors.IsNotFound(err) {
			t.Errorf("a patch of nothing: %v", err)
		}
	})
}

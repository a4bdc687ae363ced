package controllers

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/dashboardserver"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/testing/sim"
)

// place is a test's own part of a cluster, a real one or one in memory.
type place struct {
	t         *testing.T
	namespace string
	config    *rest.Config // of its kube-apiserver; nil in memory
	client    client.WithWatch
	subnet    string                  // 127.x.y.
	stopMesh  func()                  // stops the stand-in of Chaos Mesh, if there is one
	logger    logr.Logger             // of its operators; the zero value discards
	dashboard *dashboardserver.Server // of its operators; nil = they have none

	patience  time.Duration       // how long a wait is at least; 0 in virtual time, where a wait's limit is exact
	lookEvery time.Duration       // period of stand-ins and waits for changes that no watch reports
	operate   func(spy) *operator // starts an operator
	changed   chan struct{}       // receives after a change that waits check; nil before the first wait
}

// home is the namespace of the place's operators. It does not exist unless a test creates it.
func (p *place) home() string { return p.namespace + "-home" }

// standIn is Place.StandIn.
func (p *place) standIn(
	what string, every time.Duration, step func(context.Context) error, kinds ...client.ObjectList,
) (stop func()) {
	here := sim.Place{T: p.t, Client: p.client, Namespace: p.namespace}
	return here.StandIn(what, every, nil, step, kinds...)
}

func (p *place) create(object client.Object) {
	p.t.Helper()
	if object.GetNamespace() == "" {
		if _, cluster := object.(*corev1.Namespace); !cluster {
			object.SetNamespace(p.namespace)
		}
	}
	if err := p.client.Create(context.Background(), object); err != nil {
		p.t.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
}

// read reads an object by its name, and reports whether it exists.
func (p *place) read(object client.Object) bool {
	p.t.Helper()
	object.SetNamespace(p.namespace)
	err := p.client.Get(context.Background(), client.ObjectKeyFromObject(object), object)
	if client.IgnoreNotFound(err) != nil {
		p.t.Fatalf("read %T %s: %v", object, object.GetName(), err)
	}
	return err == nil
}

// change patches an object's spec or metadata.
func change[T client.Object](p *place, object T, f func(T)) error {
	p.t.Helper()
	if !p.read(object) {
		p.t.Fatalf("there is no %T %s to change", object, object.GetName())
	}
	before := object.DeepCopyObject().(client.Object)
	f(object)
	return p.client.Patch(context.Background(), object, client.MergeFrom(before))
}

func (p *place) mustChange(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// until waits for a state, and fails the test with a description of the current one on timeout.
func (p *place) until(what string, within time.Duration, came func() bool, state func() string) {
	p.t.Helper()
	if p.changed == nil {
		p.watch()
	}
	within = max(within, p.patience)
	for end := time.Now().Add(within); !came(); {
		if time.Now().After(end) {
			p.t.Fatalf("after %s still not: %s; %s", within, what, state())
		}
		again := time.NewTimer(p.lookEvery)
		select {
		case <-p.changed:
		case <-again.C:
		}
		again.Stop()
	}
}

// watch triggers waits whenever something changes in the namespace.
func (p *place) watch() {
	p.changed = make(chan struct{}, 1)
	changed := func() {
		select {
		case p.changed <- struct{}{}:
		default:
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	for _, kind := range []client.ObjectList{
		&v1alpha1.RedisLoadTestList{},
		&v1alpha1.RedisFaultList{},
		&v1alpha1.RedisExperimentList{},
		&v1alpha1.RedisExperimentScheduleList{},
		&corev1.PodList{},
	} {
		ended.Go(func() {
			sim.Watch(ctx, p.client, p.namespace, kind, changed, func(client.Object) { changed() })
		})
	}
	p.t.Cleanup(func() {
		cancel()
		ended.Wait()
	})
}

func (p *place) loadTest(name string) *v1alpha1.RedisLoadTest {
	p.t.Helper()
	test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.read(test)
	return test
}

func (p *place) fault(name string) *v1alpha1.RedisFault {
	p.t.Helper()
	f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.read(f)
	return f
}

// where describes the condition Complete.
func where(conditions []metav1.Condition) string {
	if c := summaryOf(conditions); c != nil {
		return fmt.Sprintf("%s (%s): %s", c.Reason, c.Status, c.Message)
	}
	return "neither of the conditions Complete and Ready"
}

// summaryOf is the condition that summarizes an object: Ready of a schedule, Complete of all others.
func summaryOf(conditions []metav1.Condition) *metav1.Condition {
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionComplete); c != nil {
		return c
	}
	return meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
}

func reason(conditions []metav1.Condition) string {
	if c := summaryOf(conditions); c != nil {
		return c.Reason
	}
	return ""
}

// testEnds waits until a load test is complete or has failed.
func (p *place) testEnds(name string, within time.Duration) *v1alpha1.RedisLoadTest {
	p.t.Helper()
	var test *v1alpha1.RedisLoadTest
	p.until("load test "+name+" is over", within, func() bool {
		test = p.loadTest(name)
		return state.IsFinished(test.Status.Conditions)
	}, func() string { return where(test.Status.Conditions) })
	return test
}

func (p *place) faultEnds(name string, within time.Duration) *v1alpha1.RedisFault {
	p.t.Helper()
	var f *v1alpha1.RedisFault
	p.until("fault "+name+" is over", within, func() bool {
		f = p.fault(name)
		return state.IsFinished(f.Status.Conditions) && len(f.Finalizers) == 0
	}, func() string { return where(f.Status.Conditions) })
	return f
}

// testHasReason waits until the reason of a load test is one of these.
func (p *place) testHasReason(name string, within time.Duration, reasons ...string) *v1alpha1.RedisLoadTest {
	p.t.Helper()
	var test *v1alpha1.RedisLoadTest
	p.until(fmt.Sprintf("load test %s is %v", name, reasons), within, func() bool {
		test = p.loadTest(name)
		for _, r := range reasons {
			if reason(test.Status.Conditions) == r {
				return true
			}
		}
		return false
	}, func() string { return where(test.Status.Conditions) })
	return test
}

func (p *place) faultHasReason(name string, within time.Duration, want string) *v1alpha1.RedisFault {
	p.t.Helper()
	var f *v1alpha1.RedisFault
	p.until(fmt.Sprintf("fault %s is %s", name, want), within, func() bool {
		f = p.fault(name)
		return reason(f.Status.Conditions) == want
	}, func() string {
		return where(f.Status.Conditions) + "; load: " + where(p.loadTest("run").Status.Conditions)
	})
	return f
}

package operatortest

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

// Place is a test's own part of a cluster, a real one or one in memory.
type Place struct {
	T         *testing.T
	Namespace string
	Config    *rest.Config // of its kube-apiserver; nil in memory
	Client    client.WithWatch
	Subnet    string                  // 127.x.y.
	StopMesh  func()                  // stops the stand-in of Chaos Mesh, if there is one
	Logger    logr.Logger             // of its operators; the zero value discards
	Dashboard *dashboardserver.Server // of its operators; nil = they have none
	PowerHook string                  // URL of that of its operators; "" = they have none
	Redis     *RedisSet               // of a Scenario
	Operator  *Operator               // of a Scenario

	// how long a wait is at least; 0 in virtual time, where a wait's limit is exact
	Patience  time.Duration
	LookEvery time.Duration       // period of stand-ins and waits for changes that no watch reports
	Operate   func(Spy) *Operator // starts an operator
	// receives after a change that waits check; nil before the first wait
	Changed chan struct{}
}

// Home is the namespace of the place's operators. It does not exist unless a test creates it.
func (p *Place) Home() string {
	return p.Namespace + "-home"
}

// StandIn is Place.StandIn.
func (p *Place) StandIn(
	what string, every time.Duration, step func(context.Context) error, kinds ...client.ObjectList,
) (stop func()) {
	here := sim.Place{T: p.T, Client: p.Client, Namespace: p.Namespace}
	return here.StandIn(what, every, nil, step, kinds...)
}

// Create creates an object, in the namespace of the place unless it names another one.
func (p *Place) Create(object client.Object) {
	p.T.Helper()
	if object.GetNamespace() == "" {
		if _, cluster := object.(*corev1.Namespace); !cluster {
			object.SetNamespace(p.Namespace)
		}
	}
	err := p.Client.Create(context.Background(), object)
	if err != nil {
		p.T.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
}

// Read reads an object by its name, and reports whether it exists.
func (p *Place) Read(object client.Object) bool {
	p.T.Helper()
	object.SetNamespace(p.Namespace)
	err := p.Client.Get(context.Background(), client.ObjectKeyFromObject(object), object)
	if client.IgnoreNotFound(err) != nil {
		p.T.Fatalf("read %T %s: %v", object, object.GetName(), err)
	}
	return err == nil
}

// Change patches an object's spec or metadata.
func Change[T client.Object](p *Place, object T, f func(T)) error {
	p.T.Helper()
	if !p.Read(object) {
		p.T.Fatalf("there is no %T %s to change", object, object.GetName())
	}
	before := object.DeepCopyObject().(client.Object)
	f(object)
	return p.Client.Patch(context.Background(), object, client.MergeFrom(before))
}

// MustChange fails the test if a change has failed.
func (p *Place) MustChange(err error) {
	p.T.Helper()
	if err != nil {
		p.T.Fatal(err)
	}
}

// Until waits for a state, and fails the test with a description of the current one on timeout.
func (p *Place) Until(what string, within time.Duration, came func() bool, state func() string) {
	p.T.Helper()
	if p.Changed == nil {
		p.Watch()
	}
	within = max(within, p.Patience)
	for end := time.Now().Add(within); !came(); {
		if time.Now().After(end) {
			p.T.Fatalf("after %s still not: %s; %s", within, what, state())
		}
		again := time.NewTimer(p.LookEvery)
		select {
		case <-p.Changed:
		case <-again.C:
		}
		again.Stop()
	}
}

// Watch triggers waits whenever something changes in the namespace.
func (p *Place) Watch() {
	p.Changed = make(chan struct{}, 1)
	changed := func() {
		select {
		case p.Changed <- struct{}{}:
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
			sim.Watch(ctx, p.Client, p.Namespace, kind, changed, func(client.Object) { changed() })
		})
	}
	p.T.Cleanup(func() {
		cancel()
		ended.Wait()
	})
}

// LoadTest reads a load test; one that does not exist has a name only.
func (p *Place) LoadTest(name string) *v1alpha1.RedisLoadTest {
	p.T.Helper()
	test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Read(test)
	return test
}

// Fault reads a fault; one that does not exist has a name only.
func (p *Place) Fault(name string) *v1alpha1.RedisFault {
	p.T.Helper()
	f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Read(f)
	return f
}

// Where describes the condition Complete.
func Where(conditions []metav1.Condition) string {
	if c := summaryOf(conditions); c != nil {
		return fmt.Sprintf("%s (%s): %s", c.Reason, c.Status, c.Message)
	}
	return "neither of the conditions Complete and Ready"
}

// summaryOf is the condition that summarizes an object: Ready of a schedule, Complete of all
// others.
func summaryOf(conditions []metav1.Condition) *metav1.Condition {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionComplete)
	if c != nil {
		return c
	}
	return meta.FindStatusCondition(conditions, v1alpha1.ConditionReady)
}

// Reason is the reason of the condition that summarizes an object.
func Reason(conditions []metav1.Condition) string {
	if c := summaryOf(conditions); c != nil {
		return c.Reason
	}
	return ""
}

// TestEnds waits until a load test is complete or has failed.
func (p *Place) TestEnds(name string, within time.Duration) *v1alpha1.RedisLoadTest {
	p.T.Helper()
	var test *v1alpha1.RedisLoadTest
	p.Until("load test "+name+" is over", within, func() bool {
		test = p.LoadTest(name)
		return state.IsFinished(test.Status.Conditions)
	}, func() string { return Where(test.Status.Conditions) })
	return test
}

// FaultEnds waits until a fault is over, and holds its deletion no more.
func (p *Place) FaultEnds(name string, within time.Duration) *v1alpha1.RedisFault {
	p.T.Helper()
	var f *v1alpha1.RedisFault
	p.Until("fault "+name+" is over", within, func() bool {
		f = p.Fault(name)
		return state.IsFinished(f.Status.Conditions) && len(f.Finalizers) == 0
	}, func() string { return Where(f.Status.Conditions) })
	return f
}

// TestHasReason waits until the reason of a load test is one of these.
func (p *Place) TestHasReason(
	name string, within time.Duration, reasons ...string,
) *v1alpha1.RedisLoadTest {
	p.T.Helper()
	var test *v1alpha1.RedisLoadTest
	p.Until(fmt.Sprintf("load test %s is %v", name, reasons), within, func() bool {
		test = p.LoadTest(name)
		for _, r := range reasons {
			if Reason(test.Status.Conditions) == r {
				return true
			}
		}
		return false
	}, func() string { return Where(test.Status.Conditions) })
	return test
}

// FaultHasReason waits until a fault has a reason.
func (p *Place) FaultHasReason(
	name string, within time.Duration, want string,
) *v1alpha1.RedisFault {
	p.T.Helper()
	var f *v1alpha1.RedisFault
	p.Until(fmt.Sprintf("fault %s is %s", name, want), within, func() bool {
		f = p.Fault(name)
		return Reason(f.Status.Conditions) == want
	}, func() string {
		return Where(f.Status.Conditions) + "; load: " + Where(p.LoadTest("run").Status.Conditions)
	})
	return f
}

// Annotate sets or removes an annotation of a namespace.
func (p *Place) Annotate(namespace, name, value string) {
	p.T.Helper()
	object := &corev1.Namespace{}
	err := p.Client.Get(context.Background(), client.ObjectKey{Name: namespace},
		object)
	if err != nil {
		p.T.Fatal(err)
	}
	before := object.DeepCopy()
	object.Annotations = map[string]string{name: value}
	if value == "" {
		object.Annotations = nil
	}
	p.MustChange(p.Client.Patch(context.Background(), object, client.MergeFrom(before)))
}

package redisfault

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/rules"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/lifecycle"
	"github.com/redquake/redquake/internal/testing/apitest"
)

// ofShop is a reconciler with rights in namespace shop only, and the number of its requests for namespaces. fails is
// the error of the next ones.
type ofShop struct {
	*Reconciler
	clock *testingclock.FakePassiveClock
	api   client.WithWatch
	reads int
	fails error
}

func newOfShop(t *testing.T, faults ...client.Object) *ofShop {
	o := &ofShop{clock: testingclock.NewFakePassiveClock(time.Now())}
	o.api = fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).
		WithObjects(append(faults, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})...).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
				options ...client.GetOption,
			) error {
				if _, is := object.(*metav1.PartialObjectMetadata); is {
					o.reads++
					if o.fails != nil {
						return o.fails
					}
				}
				return c.Get(ctx, key, object, options...)
			},
		}).Build()
	o.Reconciler = &Reconciler{
		Client:     o.api,
		APIReader:  o.api,
		Clock:      o.clock,
		Namespaces: []string{"shop"},
		Term:       faultrun.NewRegistry(o.clock).NewTerm(),
	}
	t.Cleanup(o.Term.Registry.Close)
	return o
}

func (o *ofShop) setStop(t *testing.T, value string) {
	t.Helper()
	shop := &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: map[string]string{v1alpha1.AnnotationStop: value}},
	}
	if err := o.api.Update(t.Context(), shop); err != nil {
		t.Fatal(err)
	}
}

// A namespace that is not watched is read by its name, some seconds apart. What was read last holds while the API
// server does not answer.
func TestNamespaceIsReadByName(t *testing.T) {
	o := newOfShop(t)
	for _, step := range []struct {
		passes time.Duration
		fails  error
		reads  int
	}{
		{0, nil, 1},
		{rules.NamespaceAge - 1, nil, 1},
		{1, nil, 2},
		{rules.NamespaceAge, errors.New("no answer"), 3},
		{-time.Hour, nil, 4},
	} {
		o.clock.SetTime(o.clock.Now().Add(step.passes))
		o.fails = step.fails
		if found, err := o.namespaces().Of(t.Context(), "shop"); err != nil || found.Name != "shop" || o.reads != step.reads {
			t.Errorf("after %s: %d reads, want %d; %v", step.passes, o.reads, step.reads, err)
		}
	}
	o.setStop(t, "true")
	o.clock.SetTime(o.clock.Now().Add(rules.NamespaceAge))
	for _, want := range []string{"true", "yes", "false"} { // and its end is seen at once
		o.setStop(t, want)
		if found, err := o.namespaces().Of(t.Context(), "shop"); err != nil ||
			found.Annotations[v1alpha1.AnnotationStop] != want {
			t.Errorf("the annotation is %q: %v, %v", want, found, err)
		}
	}
	if found, err := o.namespaces().Of(t.Context(), "none"); err != nil || len(found.Annotations) != 0 {
		t.Errorf("a namespace that does not exist: %v, %v", found, err)
	}
}

// Without the right to read the namespace no fault begins, as its owner may have forbidden that. What has begun is not
// kept from ending.
func TestNamespaceMayNotBeRead(t *testing.T) {
	for name, tc := range map[string]struct {
		seen     lifecycle.Fault
		withheld bool
	}{
		"before the record":   {lifecycle.Fault{}, true},
		"after it":            {lifecycle.Fault{Injection: lifecycle.Injection{Recorded: true}}, false},
		"while it is deleted": {lifecycle.Fault{Life: lifecycle.Life{Deleting: true}}, false},
		"recorded, and deleted": {
			lifecycle.Fault{Life: lifecycle.Life{Deleting: true}, Injection: lifecycle.Injection{Recorded: true}},
			false,
		},
	} {
		o := newOfShop(t)
		o.fails = apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "shop", errors.New("no such right"))
		s := &scope.Fault{Fault: &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}, Seen: tc.seen}
		if err := o.ending().ObserveStop(t.Context(), s); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if p := s.Seen.Withheld; (p != nil) != tc.withheld ||
			p != nil && (p.Lasting || p.Reason != v1alpha1.ReasonNotPermitted ||
				!strings.Contains(p.Message, "may not get namespace shop")) {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// recordedFault is a fault in namespace shop that acts since the clock's present.
func (o *ofShop) recordedFault(name string) *v1alpha1.RedisFault {
	now := metav1.NewMicroTime(o.clock.Now())
	f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}}
	f.Status.StartTime, f.Status.Targets = &now, []v1alpha1.FaultTarget{{Pod: "redis-0"}}
	return f
}

// notified are the faults that are to be reconciled, by name.
func (o *ofShop) notified() []string {
	var names []string
	for {
		select {
		case e := <-o.Term.Changed():
			names = append(names, e.Object.GetName())
		default:
			slices.Sort(names)
			return slices.Compact(names)
		}
	}
}

// Nothing is asked while no fault acts, however many are suspended, wait or are reverted. While one does, the
// annotation ends all that are open.
func TestNamespacesAreFollowed(t *testing.T) {
	over := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "over"}}
	over.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue}}
	o := newOfShop(t, over)
	o.OperatorNamespace = "redquake-system"
	o.setStop(t, "true")
	suspended := &v1alpha1.RedisFault{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "suspended"},
		Spec:       v1alpha1.RedisFaultSpec{Suspend: true},
	}
	waiting := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "waiting"}}
	reverted := o.recordedFault("reverted")
	reverted.Status.RevertedAt = reverted.Status.StartTime
	for _, f := range []*v1alpha1.RedisFault{suspended, waiting, reverted} {
		if err := o.api.Create(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	if o.ending().LookAtNamespaces(t.Context()); o.reads != 0 || len(o.notified()) != 0 {
		t.Errorf("%d reads although no fault acts", o.reads)
	}
	if err := o.api.Create(t.Context(), o.recordedFault("acting")); err != nil {
		t.Fatal(err)
	}
	o.ending().LookAtNamespaces(t.Context())
	if got := o.notified(); o.reads != 2 || !slices.Equal(got, []string{"acting", "reverted", "suspended", "waiting"}) {
		t.Errorf("%d reads, of which the operator's namespace is one; reconciled are %q", o.reads, got)
	}
}

// No fault begins while the annotation is set, also if the copy of the namespace is from just before that.
func TestNamespaceIsReadWhenAFaultBegins(t *testing.T) {
	o := newOfShop(t)
	o.OperatorNamespace = "shop"
	s := &scope.Fault{Fault: &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "waiting"}}}
	if err := o.ending().ObserveStop(t.Context(), s); err != nil || s.Seen.Stopped != "" {
		t.Fatalf("%v, %+v", err, s.Seen)
	}
	o.setStop(t, "true")
	if got := o.recordFresh(t.Context(), s); !got.Again || got.Err != nil || s.Fault.Status.StartTime != nil {
		t.Fatalf("%+v", got)
	}
	if err := o.ending().ObserveStop(t.Context(), s); err != nil ||
		!strings.Contains(s.Seen.Stopped, v1alpha1.AnnotationStop) {
		t.Errorf("%v, %+v", err, s.Seen)
	}
}

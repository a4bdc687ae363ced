//go:build integration

package controllers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/runs"
	"github.com/redquake/redquake/internal/testing/sim"
)

// draw makes random objects: every optional field there or not, values at and around their limits.
type draw struct{ *rand.Rand }

func (d draw) yes() bool { return d.IntN(2) == 0 }

func pick[T any](d draw, values ...T) T { return values[d.IntN(len(values))] }

func maybe[T any](d draw, values ...T) *T {
	if d.yes() {
		return nil
	}
	return new(pick(d, values...))
}

func (d draw) length(values ...time.Duration) *metav1.Duration {
	if d.yes() {
		return nil
	}
	return &metav1.Duration{Duration: pick(d, values...)}
}

func (d draw) value(values ...time.Duration) metav1.Duration {
	return metav1.Duration{Duration: pick(d, append(values, 0)...)}
}

func (d draw) text(values ...string) string { return pick(d, values...) }

func (d draw) target() v1alpha1.RedisTarget {
	t := v1alpha1.RedisTarget{
		Topology: pick(d, "", v1alpha1.TopologyAuto, v1alpha1.TopologyStandalone),
		Database: pick(d, int32(0), 1, 15, 65535),
	}
	switch d.IntN(3) {
	case 0:
		t.Service = &v1alpha1.ServiceReference{
			Name: d.text("redis", "gone", "a.b"),
			Port: pick(d, int32(0), 1, 6379, 65535, 6379, 65536),
		}
	case 1:
		t.Addresses = pick(d, []string{"127.0.0.1:1"}, []string{"redis:6379", "[::1]:6379"}, []string{"redis:99999"},
			[]string{"redis:0"}, []string{"-:1"})
	}
	if d.yes() {
		t.PodSelector = pick(d, &metav1.LabelSelector{},
			&metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}},
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}},
			&metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn}},
			},
			&metav1.LabelSelector{MatchLabels: map[string]string{"not a label!": "x y"}})
	}
	if d.IntN(3) == 0 {
		t.Auth = &v1alpha1.RedisAuth{
			Username:          d.text("", "app"),
			PasswordSecretRef: v1alpha1.SecretKeyReference{Name: d.text("auth", "gone"), Key: d.text("password", "none")},
		}
	}
	if d.IntN(3) == 0 {
		t.TLS = &v1alpha1.RedisTLS{ServerName: d.text("", "redis"), InsecureSkipVerify: d.yes()}
		if d.yes() {
			t.TLS.CASecretRef = &v1alpha1.SecretReference{Name: d.text("auth", "gone")}
		}
		if d.yes() {
			t.TLS.CertSecretRef = &v1alpha1.SecretReference{Name: d.text("auth", "gone")}
		}
	}
	return t
}

func (d draw) loadTest(name string) *v1alpha1.RedisLoadTest {
	s := time.Second
	test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Name: name}}
	spec := &test.Spec
	spec.Target = d.target()
	spec.Client = v1alpha1.LoadClient{
		Connections:    pick(d, int32(0), 1, 10000),
		Pipeline:       pick(d, int32(0), 1, 1000),
		DialTimeout:    d.value(10*time.Millisecond, 60*s),
		RequestTimeout: d.value(10*time.Millisecond, 60*s),
		Protocol:       pick(d, "", v1alpha1.RESP2, v1alpha1.RESP3),
	}
	shape := &spec.Load
	if d.IntN(4) == 0 {
		shape.ThinkTime = d.length(0, time.Hour)
	}
	if d.IntN(3) == 0 {
		for range 1 + d.IntN(3) {
			stage := v1alpha1.LoadStage{Duration: metav1.Duration{Duration: pick(d, s, 24*time.Hour)}}
			if d.IntN(8) != 0 {
				stage.Users = new(pick(d, int32(0), 1, 1_000_000))
			} else {
				stage.Rate = new(pick(d, int32(0), 1, 100_000_000))
			}
			shape.Stages = append(shape.Stages, stage)
		}
	} else {
		shape.Users, shape.Rate = maybe(d, int32(1), 2, 1_000_000), maybe(d, int32(1), 100, 100_000_000)
		shape.RampUp, shape.WarmUp = d.length(0, s, time.Hour), d.length(0, s, time.Hour)
		shape.Duration, shape.Requests = d.length(s, 168*time.Hour), maybe(d, int64(1), 1000, 1_000_000_000_000)
		if shape.Duration == nil && shape.Requests == nil && d.IntN(4) != 0 {
			shape.Duration = &metav1.Duration{Duration: time.Minute}
		}
		if shape.Users == nil && shape.Rate == nil && d.IntN(4) != 0 {
			shape.Rate = new(int32(100))
		}
	}
	for i := range 1 + d.IntN(3) {
		spec.Workload.Commands = append(spec.Workload.Commands, v1alpha1.WorkloadCommand{
			Name:   fmt.Sprintf("c%d", i),
			Weight: pick(d, int32(0), 1, 1_000_000),
			Command: pick(d, []string{"GET", "{key}"}, []string{"SET", "{key}", "{value}"}, []string{""}, []string{"{value}"},
				[]string{"{what}"}, []string{"EVAL", "return 1", "0", "{int}{user}{seq}", "\x00ä"}),
		})
	}
	spec.Workload.Keyspace = v1alpha1.Keyspace{
		Prefix:       d.text("", "rq:", strings.Repeat("ä", 128)),
		Keys:         pick(d, int64(0), 1, 1_000_000_000),
		Distribution: pick[v1alpha1.KeyDistribution](d, "", "Uniform", "Zipf", "Gaussian", "Sequential"),
		Prefill:      d.yes(),
		TTL:          d.length(s, 8760*time.Hour),
	}
	if d.IntN(4) == 0 {
		spec.Workload.Values = v1alpha1.ValueSizes{
			Bytes:    maybe(d, int32(1), 16777216),
			MinBytes: maybe(d, int32(1)),
			MaxBytes: maybe(d, int32(1), 16777216),
		}
	}
	spec.Pods = v1alpha1.LoadPods{
		Count:           pick(d, int32(0), 1, 1, 2, 2, 3, 7),
		Lost:            pick(d, "", v1alpha1.LostPodFail, v1alpha1.LostPodContinue),
		StartDeadline:   d.value(5*s, 24*time.Hour),
		LoadPodTemplate: v1alpha1.LoadPodTemplate{Image: d.text("", "x")},
	}
	spec.Probe.Rate = maybe(d, int32(0), 1, 1000)
	spec.Observe = v1alpha1.LoadObserve{
		Interval:  d.value(50*time.Millisecond, s),
		RedisInfo: d.length(0, 100*time.Millisecond, time.Hour),
	}
	if d.yes() {
		spec.Objectives = &v1alpha1.Objectives{
			MinThroughput: maybe(d, "1", "0.5", "1.3", "99999999999999", "1e3"),
			MaxLatencyP99: d.length(time.Microsecond, time.Minute),
			MaxErrorRate:  maybe(d, "0%", "100%", "99.999999%"),
		}
	}
	spec.Abort = d.IntN(5) == 0
	spec.Suspend = d.IntN(5) == 0
	spec.TTLSecondsAfterFinished = maybe(d, int32(0), 1, 31536000)
	return test
}

func (d draw) fault(name string, faultType v1alpha1.FaultType, tests []string) *v1alpha1.RedisFault {
	f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: name}}
	spec := &f.Spec
	if d.IntN(3) != 0 {
		spec.LoadTestRef = &v1alpha1.LoadTestReference{Name: pick(d, append(tests, "gone")...)}
	}
	if d.yes() {
		spec.Target = new(d.target())
	}
	spec.Select = v1alpha1.FaultSelector{
		Role: pick(d, "", v1alpha1.RoleAny, v1alpha1.RolePrimary, v1alpha1.RoleReplica),
		Mode: pick(d, "", v1alpha1.SelectOne, v1alpha1.SelectAll, v1alpha1.SelectCount, v1alpha1.SelectPercent),
	}
	if spec.Select.Mode == v1alpha1.SelectCount {
		spec.Select.Count = new(pick(d, int32(1), 2, 1000))
	}
	if spec.Select.Mode == v1alpha1.SelectPercent {
		spec.Select.Percent = new(pick(d, int32(1), 50, 100))
	}
	spec.Select.Pick = pick(d, "", v1alpha1.PickFirst, v1alpha1.PickRandom)
	spec.Trigger = v1alpha1.FaultTrigger{Timeout: d.value(time.Second, 24*time.Hour)}
	if d.yes() {
		spec.Trigger.After = d.length(0, 168*time.Hour)
	} else {
		spec.Trigger.SteadyFor = d.length(2*time.Second, time.Hour)
	}
	spec.RecoveryDeadline = d.value(time.Second, 24*time.Hour)
	spec.Action.Type = faultType
	d.member(spec)
	f.Annotations = d.marks()
	spec.Abort, spec.Suspend, spec.TTLSecondsAfterFinished = d.IntN(5) == 0, d.IntN(5) == 0, maybe(d, int32(0), 31536000)
	return f
}

func (d draw) instant() *metav1.MicroTime {
	return maybe(d, metav1.NewMicroTime(time.Now()), metav1.NewMicroTime(time.Unix(0, 0)),
		metav1.NewMicroTime(time.Now().Add(time.Hour)))
}

func (d draw) conditions(kinds ...string) []metav1.Condition {
	var list []metav1.Condition
	for _, kind := range kinds {
		if d.yes() {
			list = append(list, metav1.Condition{
				Type: kind,
				Status: pick(d, metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionFalse,
					metav1.ConditionUnknown),
				Reason:             pick(d, "X", v1alpha1.ReasonNoTarget, v1alpha1.ReasonSucceeded),
				LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour)),
			})
		}
	}
	return list
}

var words = []v1alpha1.Decimal{"", "1", "0.99", "99%", "-5", "nonsense", "NaN", "∞"}

func (d draw) bounded() *v1alpha1.BoundedDuration {
	return pick(d, nil, &v1alpha1.BoundedDuration{}, &v1alpha1.BoundedDuration{Value: -1, AtMost: math.MaxInt64},
		&v1alpha1.BoundedDuration{Value: 5e6, AtLeast: 4e6, AtMost: 6e6})
}

func (d draw) outage() *v1alpha1.Outage {
	if b := d.bounded(); b != nil {
		return &v1alpha1.Outage{BoundedDuration: *b, Of: pick(d, "", v1alpha1.OutageOfReads, "Other")}
	}
	return nil
}

func (d draw) impact() *v1alpha1.Impact {
	if d.yes() {
		return nil
	}
	return &v1alpha1.Impact{
		Dip:          pick(d, nil, &v1alpha1.Dip{Value: pick(d, words...), Of: pick(d, "", v1alpha1.DipOfReads, "Other")}),
		Outage:       d.outage(),
		RecoveryTime: d.bounded(),
		Recovered:    d.yes(),
		LostRequests: pick(d, int64(0), 1<<62),
	}
}

// faultStatus is any status that a person or another version may have written.
func (d draw) faultStatus(f *v1alpha1.RedisFault) {
	f.Status = v1alpha1.RedisFaultStatus{
		Conditions: d.conditions(v1alpha1.ConditionComplete, v1alpha1.ConditionFailed, v1alpha1.ConditionTargetsSelected),
		StartTime:  d.instant(), CompletionTime: d.instant(), InjectedAt: d.instant(), RevertedAt: d.instant(),
		RevertingSince: d.instant(), LoadTest: pick(d, "", "gone", "lt-0"), Impact: d.impact(),
		MarkedBy: pick(d, "", v1alpha1.MarkedByAnnotation, v1alpha1.MarkedByLoad),
		Effect:   pick(d, v1alpha1.EffectConfirmed, v1alpha1.EffectInconclusive, v1alpha1.EffectNotObserved),
	}
	for i := range d.IntN(3) {
		f.Status.Targets = append(f.Status.Targets, d.record(fmt.Sprintf("redis-%d", i)))
	}
	for i := range d.IntN(3) * 127 {
		f.Status.Timeline = append(f.Status.Timeline, v1alpha1.TimelineEvent{
			At:    metav1.NowMicro(),
			Event: fmt.Sprint("e", i),
		})
	}
}

func (d draw) testStatus(test *v1alpha1.RedisLoadTest) {
	test.Status = v1alpha1.RedisLoadTestStatus{
		Conditions:     d.conditions(v1alpha1.ConditionComplete, v1alpha1.ConditionFailed, v1alpha1.ConditionSuspended),
		StartTime:      d.instant(),
		CompletionTime: d.instant(),
		Verdict:        pick(d, v1alpha1.VerdictPass, v1alpha1.VerdictFail),
		Progress:       pick(d, int32(0), 7),
		Faults:         pick(d, nil, []v1alpha1.FaultSummary{{Name: "x"}}),
	}
	if d.yes() {
		test.Status.Target = &v1alpha1.TargetStatus{Addresses: pick(d, nil, []string{"nonsense"}, []string{"127.0.0.1:1"})}
	}
}

// silentServers does not answer: no address of a random object may be connected to.
type silentServers struct{}

func (silentServers) Do(context.Context, string, redis.Login, ...any) (any, error) {
	return nil, errors.New("silent")
}

func (silentServers) Ask(context.Context, string, redis.Login) (topology.Server, error) {
	return topology.Server{}, errors.New("no answer")
}

func (silentServers) Shutdown(context.Context, string, redis.Login) error {
	return errors.New("no answer")
}

func (silentServers) Segfault(context.Context, string, redis.Login) error {
	return errors.New("no answer")
}

func (silentServers) Queue(context.Context, string, string, redis.Login, [][]string) error {
	return errors.New("no answer")
}
func (silentServers) Queued(string) bool { return false }
func (silentServers) HangUp(string)      {}

// sensible reports whether an error is to be retried: one of the API server, or a missing dependency.
func sensible(err error) bool {
	return err == nil || apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
}

// The operator reconciles every spec and status that the API server accepts, without a panic and without a permanent
// error. A real API server accepts the objects; they are reconciled on one in memory.
func TestNoPanicOnAnyAcceptedObject(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	d := draw{rand.New(rand.NewPCG(20261121, 1))}
	objects := p.acceptedOf(d, 360)
	memory := sim.NewAPI(NewScheme())
	for _, o := range append([]client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.namespace}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "auth"},
			StringData: map[string]string{"password": "x"},
		},
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "redis"},
			Spec:       corev1.ServiceSpec{ClusterIP: "None", Selector: map[string]string{"app": "redis"}},
		},
	}, objects...) {
		created := o.DeepCopyObject().(client.Object)
		created.SetResourceVersion("")
		p.mustChange(memory.Create(t.Context(), created))
	}
	clock := testingclock.NewFakePassiveClock(time.Now())
	sessions := runs.NewRegistry()
	sessions.Dial = func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("connection refused")
	}
	t.Cleanup(sessions.Close)
	record := func(string) events.EventRecorder { return &events.FakeRecorder{} }
	of := reconcilers(Settings{Image: "x", Clock: clock, Runs: sessions, Servers: silentServers{}}, memory, memory, memory,
		record)
	tests, faults := of.tests, of.faults
	t.Cleanup(faults.Close)
	for round := range 4 {
		if round == 2 { // from here on with any status
			for _, accepted := range objects {
				object := accepted.DeepCopyObject().(client.Object)
				if memory.Get(t.Context(), client.ObjectKeyFromObject(object), object) != nil {
					continue
				}
				copyStatus(accepted, object)
				p.mustChange(memory.Status().Update(t.Context(), object))
			}
		}
		for _, object := range objects {
			var r reconcile.Reconciler = tests
			if _, ok := object.(*v1alpha1.RedisFault); ok {
				r = faults
			}
			for range 2 {
				if err := safely(t.Context(), r, object); !sensible(err) {
					t.Errorf("round %d, %T %s: %v", round, object, object.GetName(), err)
				}
			}
		}
		clock.SetTime(clock.Now().Add(40 * time.Second))
	}
}

// acceptedOf draws n objects, and returns those that the API server accepts, as it stores them: with defaults, and with
// a drawn status if it accepts that.
func (p *place) acceptedOf(d draw, n int) []client.Object {
	p.t.Helper()
	var drawn []client.Object
	var names []string
	for i := range n {
		var object client.Object
		if i%3 == 2 {
			object = d.fault(fmt.Sprintf("f-%d", i), faultTypes[i/3%len(faultTypes)], names)
		} else {
			object = d.loadTest(fmt.Sprintf("lt-%d", i))
			names = append(names, object.GetName())
		}
		object.SetNamespace(p.namespace)
		drawn = append(drawn, object)
	}
	accepted := make([]bool, n)
	var creating errgroup.Group
	creating.SetLimit(8)
	for i, object := range drawn {
		statuses := draw{rand.New(rand.NewPCG(20261121, uint64(i)+2))}
		creating.Go(func() error {
			err := p.client.Create(context.Background(), object)
			if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
				return nil
			} else if err != nil {
				return err
			}
			accepted[i] = true
			kept := object.DeepCopyObject().(client.Object)
			switch o := object.(type) {
			case *v1alpha1.RedisLoadTest:
				statuses.testStatus(o)
			case *v1alpha1.RedisFault:
				statuses.faultStatus(o)
			}
			err = p.client.Status().Update(context.Background(), object)
			if apierrors.IsInvalid(err) {
				copyStatus(kept, object)
				err = nil
			}
			return err
		})
	}
	p.mustChange(creating.Wait())
	var objects []client.Object
	for i := range drawn {
		if accepted[i] {
			objects = append(objects, drawn[i])
		}
	}
	for _, faultType := range faultTypes {
		if !slices.ContainsFunc(objects, func(o client.Object) bool {
			f, is := o.(*v1alpha1.RedisFault)
			return is && f.Spec.Action.Type == faultType
		}) {
			p.t.Errorf("no fault of type %s was accepted", faultType)
		}
	}
	refused := n - len(objects)
	p.t.Logf("%d accepted, %d refused", len(objects), refused)
	if len(objects) < n/4 || refused == 0 {
		p.t.Errorf("%d accepted, %d refused: the generator does not reach both sides of the limits", len(objects), refused)
	}
	return objects
}

func copyStatus(from, to client.Object) {
	switch o := to.(type) {
	case *v1alpha1.RedisLoadTest:
		o.Status = *from.(*v1alpha1.RedisLoadTest).Status.DeepCopy()
	case *v1alpha1.RedisFault:
		o.Status = *from.(*v1alpha1.RedisFault).Status.DeepCopy()
	}
}

// safely reconciles, and converts a panic to an error.
func safely(ctx context.Context, r reconcile.Reconciler, object client.Object) (err error) {
	defer func() {
		if what := recover(); what != nil {
			err = fmt.Errorf("panic: %v\n%s", what, debug.Stack())
		}
	}()
	_, err = r.Reconcile(ctx, ctrl.Request{
		NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()},
	})
	return err
}

//go:build integration

package fuzz

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
	"github.com/redquake/redquake/controllers"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/runs"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/sim"
	"github.com/redquake/redquake/internal/testing/stage"
)

func length(d stage.Draw, values ...time.Duration) *metav1.Duration {
	if d.Yes() {
		return nil
	}
	return &metav1.Duration{Duration: stage.Pick(d, values...)}
}

func target(d stage.Draw) v1alpha1.RedisTarget {
	t := v1alpha1.RedisTarget{
		Topology: stage.Pick(d, "", v1alpha1.TopologyAuto, v1alpha1.TopologyStandalone),
		Database: stage.Pick(d, int32(0), 1, 15, 65535),
	}
	switch d.IntN(3) {
	case 0:
		t.Service = &v1alpha1.ServiceReference{
			Name: d.Text("redis", "gone", "a.b"),
			Port: stage.Pick(d, int32(0), 1, 6379, 65535, 6379, 65536),
		}
	case 1:
		t.Addresses = stage.Pick(d, []string{"127.0.0.1:1"}, []string{"redis:6379", "[::1]:6379"}, []string{"redis:99999"},
			[]string{"redis:0"}, []string{"-:1"})
	}
	if d.Yes() {
		t.PodSelector = stage.Pick(d, &metav1.LabelSelector{},
			&metav1.LabelSelector{MatchLabels: map[string]string{"app": "redis"}},
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}},
			&metav1.LabelSelector{
				MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn}},
			},
			&metav1.LabelSelector{MatchLabels: map[string]string{"not a label!": "x y"}})
	}
	if d.IntN(3) == 0 {
		t.Auth = &v1alpha1.RedisAuth{
			Username:          d.Text("", "app"),
			PasswordSecretRef: v1alpha1.SecretKeyReference{Name: d.Text("auth", "gone"), Key: d.Text("password", "none")},
		}
	}
	if d.IntN(3) == 0 {
		t.TLS = &v1alpha1.RedisTLS{ServerName: d.Text("", "redis"), InsecureSkipVerify: d.Yes()}
		if d.Yes() {
			t.TLS.CASecretRef = &v1alpha1.SecretReference{Name: d.Text("auth", "gone")}
		}
		if d.Yes() {
			t.TLS.CertSecretRef = &v1alpha1.SecretReference{Name: d.Text("auth", "gone")}
		}
	}
	return t
}

func loadTest(d stage.Draw, name string) *v1alpha1.RedisLoadTest {
	s := time.Second
	test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Name: name}}
	spec := &test.Spec
	spec.Target = target(d)
	spec.Client = v1alpha1.LoadClient{
		Connections:    stage.Pick(d, int32(0), 1, 10000),
		Pipeline:       stage.Pick(d, int32(0), 1, 1000),
		DialTimeout:    d.Value(10*time.Millisecond, 60*s),
		RequestTimeout: d.Value(10*time.Millisecond, 60*s),
		Protocol:       stage.Pick(d, "", v1alpha1.RESP2, v1alpha1.RESP3),
	}
	shape := &spec.Load
	if d.IntN(4) == 0 {
		shape.ThinkTime = length(d, 0, time.Hour)
	}
	if d.IntN(3) == 0 {
		for range 1 + d.IntN(3) {
			step := v1alpha1.LoadStage{Duration: metav1.Duration{Duration: stage.Pick(d, s, 24*time.Hour)}}
			if d.IntN(8) != 0 {
				step.Users = new(stage.Pick(d, int32(0), 1, 1_000_000))
			} else {
				step.Rate = new(stage.Pick(d, int32(0), 1, 100_000_000))
			}
			shape.Stages = append(shape.Stages, step)
		}
	} else {
		shape.Users, shape.Rate = stage.Maybe(d, int32(1), 2, 1_000_000), stage.Maybe(d, int32(1), 100, 100_000_000)
		shape.RampUp, shape.WarmUp = length(d, 0, s, time.Hour), length(d, 0, s, time.Hour)
		shape.Duration, shape.Requests = length(d, s, 168*time.Hour), stage.Maybe(d, int64(1), 1000, 1_000_000_000_000)
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
			Weight: stage.Pick(d, int32(0), 1, 1_000_000),
			Command: stage.Pick(d, []string{"GET", "{key}"}, []string{"SET", "{key}", "{value}"}, []string{""},
				[]string{"{value}"},
				[]string{"{what}"}, []string{"EVAL", "return 1", "0", "{int}{user}{seq}", "\x00ä"}),
		})
	}
	spec.Workload.Keyspace = v1alpha1.Keyspace{
		Prefix:       d.Text("", "rq:", strings.Repeat("ä", 128)),
		Keys:         stage.Pick(d, int64(0), 1, 1_000_000_000),
		Distribution: stage.Pick[v1alpha1.KeyDistribution](d, "", "Uniform", "Zipf", "Gaussian", "Sequential"),
		Prefill:      d.Yes(),
		TTL:          length(d, s, 8760*time.Hour),
	}
	if d.IntN(4) == 0 {
		spec.Workload.Values = v1alpha1.ValueSizes{
			Bytes:    stage.Maybe(d, int32(1), 16777216),
			MinBytes: stage.Maybe(d, int32(1)),
			MaxBytes: stage.Maybe(d, int32(1), 16777216),
		}
	}
	spec.Pods = v1alpha1.LoadPods{
		Count:           stage.Pick(d, int32(0), 1, 1, 2, 2, 3, 7),
		Lost:            stage.Pick(d, "", v1alpha1.LostPodFail, v1alpha1.LostPodContinue),
		StartDeadline:   d.Value(5*s, 24*time.Hour),
		LoadPodTemplate: v1alpha1.LoadPodTemplate{Image: d.Text("", "x")},
	}
	spec.Probe.Rate = stage.Maybe(d, int32(0), 1, 1000)
	spec.Observe = v1alpha1.LoadObserve{
		Interval:  d.Value(50*time.Millisecond, s),
		RedisInfo: length(d, 0, 100*time.Millisecond, time.Hour),
	}
	if d.Yes() {
		spec.Objectives = &v1alpha1.Objectives{
			MinThroughput: stage.Maybe(d, "1", "0.5", "1.3", "99999999999999", "1e3"),
			MaxLatencyP99: length(d, time.Microsecond, time.Minute),
			MaxErrorRate:  stage.Maybe(d, "0%", "100%", "99.999999%"),
		}
	}
	spec.Abort = d.IntN(5) == 0
	spec.Suspend = d.IntN(5) == 0
	spec.TTLSecondsAfterFinished = stage.Maybe(d, int32(0), 1, 31536000)
	return test
}

func fault(d stage.Draw, name string, faultType v1alpha1.FaultType, tests []string) *v1alpha1.RedisFault {
	f := &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: name}}
	spec := &f.Spec
	if d.IntN(3) != 0 {
		spec.LoadTestRef = &v1alpha1.LoadTestReference{Name: stage.Pick(d, append(tests, "gone")...)}
	}
	if d.Yes() {
		spec.Target = new(target(d))
	}
	spec.Select = v1alpha1.FaultSelector{
		Role: stage.Pick(d, "", v1alpha1.RoleAny, v1alpha1.RolePrimary, v1alpha1.RoleReplica),
		Mode: stage.Pick(d, "", v1alpha1.SelectOne, v1alpha1.SelectAll, v1alpha1.SelectCount, v1alpha1.SelectPercent),
	}
	if spec.Select.Mode == v1alpha1.SelectCount {
		spec.Select.Count = new(stage.Pick(d, int32(1), 2, 1000))
	}
	if spec.Select.Mode == v1alpha1.SelectPercent {
		spec.Select.Percent = new(stage.Pick(d, int32(1), 50, 100))
	}
	spec.Select.Pick = stage.Pick(d, "", v1alpha1.PickFirst, v1alpha1.PickRandom)
	spec.Trigger = v1alpha1.FaultTrigger{Timeout: d.Value(time.Second, 24*time.Hour)}
	if d.Yes() {
		spec.Trigger.After = length(d, 0, 168*time.Hour)
	} else {
		spec.Trigger.SteadyFor = length(d, 2*time.Second, time.Hour)
	}
	spec.RecoveryDeadline = d.Value(time.Second, 24*time.Hour)
	spec.Action.Type = faultType
	member(d, spec)
	f.Annotations = marks(d)
	spec.Abort = d.IntN(5) == 0
	spec.Suspend = d.IntN(5) == 0
	spec.TTLSecondsAfterFinished = stage.Maybe(d, int32(0), 31536000)
	return f
}

func instant(d stage.Draw) *metav1.MicroTime {
	return stage.Maybe(d, metav1.NewMicroTime(time.Now()), metav1.NewMicroTime(time.Unix(0, 0)),
		metav1.NewMicroTime(time.Now().Add(time.Hour)))
}

func conditions(d stage.Draw, kinds ...string) []metav1.Condition {
	var list []metav1.Condition
	for _, kind := range kinds {
		if d.Yes() {
			list = append(list, metav1.Condition{
				Type: kind,
				Status: stage.Pick(d, metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionFalse,
					metav1.ConditionUnknown),
				Reason:             stage.Pick(d, "X", v1alpha1.ReasonNoTarget, v1alpha1.ReasonSucceeded),
				LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour)),
			})
		}
	}
	return list
}

var words = []v1alpha1.Decimal{"", "1", "0.99", "99%", "-5", "nonsense", "NaN", "∞"}

func bounded(d stage.Draw) *v1alpha1.BoundedDuration {
	return stage.Pick(d, nil, &v1alpha1.BoundedDuration{},
		&v1alpha1.BoundedDuration{Value: v1alpha1.DurationOf(-time.Microsecond), AtMost: v1alpha1.DurationOf(math.MaxInt64)},
		&v1alpha1.BoundedDuration{
			Value:   v1alpha1.DurationOf(5 * time.Second),
			AtLeast: v1alpha1.DurationOf(4 * time.Second),
			AtMost:  v1alpha1.DurationOf(6 * time.Second),
		})
}

func outage(d stage.Draw) *v1alpha1.Outage {
	if b := bounded(d); b != nil {
		return &v1alpha1.Outage{BoundedDuration: *b, Of: stage.Pick(d, "", v1alpha1.OutageOfReads, "Other")}
	}
	return nil
}

func impact(d stage.Draw) *v1alpha1.Impact {
	if d.Yes() {
		return nil
	}
	return &v1alpha1.Impact{
		Dip: stage.Pick(d, nil, &v1alpha1.Dip{
			Value: stage.Pick(d, words...),
			Of:    stage.Pick(d, "", v1alpha1.DipOfReads, "Other"),
		}),
		Outage:       outage(d),
		RecoveryTime: bounded(d),
		Recovered:    d.Yes(),
		LostRequests: stage.Pick(d, int64(0), 1<<62),
	}
}

// faultStatus is any status that a person or another version may have written.
func faultStatus(d stage.Draw, f *v1alpha1.RedisFault) {
	f.Status = v1alpha1.RedisFaultStatus{
		Conditions: conditions(d, v1alpha1.ConditionComplete, v1alpha1.ConditionFailed, v1alpha1.ConditionTargetsSelected),
		StartTime:  instant(d), CompletionTime: instant(d), InjectedAt: instant(d), RevertedAt: instant(d),
		RevertingSince: instant(d), LoadTest: stage.Pick(d, "", "gone", "lt-0"), Impact: impact(d),
		MarkedBy: stage.Pick(d, "", v1alpha1.MarkedByAnnotation, v1alpha1.MarkedByLoad),
		Effect:   stage.Pick(d, v1alpha1.EffectConfirmed, v1alpha1.EffectInconclusive, v1alpha1.EffectNotObserved),
	}
	for i := range d.IntN(3) {
		f.Status.Targets = append(f.Status.Targets, recordOf(d, fmt.Sprintf("redis-%d", i)))
	}
	for i := range d.IntN(3) * 127 {
		f.Status.Timeline = append(f.Status.Timeline, v1alpha1.TimelineEvent{
			At:    metav1.NowMicro(),
			Event: fmt.Sprint("e", i),
		})
	}
}

func testStatus(d stage.Draw, test *v1alpha1.RedisLoadTest) {
	test.Status = v1alpha1.RedisLoadTestStatus{
		Conditions:     conditions(d, v1alpha1.ConditionComplete, v1alpha1.ConditionFailed, v1alpha1.ConditionSuspended),
		StartTime:      instant(d),
		CompletionTime: instant(d),
		Verdict:        stage.Pick(d, v1alpha1.VerdictPass, v1alpha1.VerdictFail),
		Progress:       stage.Pick(d, int32(0), 7),
		Faults:         stage.Pick(d, nil, []v1alpha1.FaultSummary{{Name: "x"}}),
	}
	if d.Yes() {
		test.Status.Target = &v1alpha1.TargetStatus{
			Addresses: stage.Pick(d, nil, []string{"nonsense"}, []string{"127.0.0.1:1"}),
		}
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

func (silentServers) Flood(context.Context, string, string, redis.Login, int64, int64) (int64, error) {
	return 0, errors.New("silent")
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
	p := operatortest.NewPlace(t)
	d := stage.Draw{Rand: rand.New(rand.NewPCG(20261121, 1))}
	objects := acceptedOf(p, d, 540)
	memory := sim.NewAPI(controllers.NewScheme())
	for _, o := range append([]client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.Namespace}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "auth"},
			StringData: map[string]string{"password": "x"},
		},
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "redis"},
			Spec:       corev1.ServiceSpec{ClusterIP: "None", Selector: map[string]string{"app": "redis"}},
		},
	}, objects...) {
		created := o.DeepCopyObject().(client.Object)
		created.SetResourceVersion("")
		p.MustChange(memory.Create(t.Context(), created))
	}
	clock := testingclock.NewFakePassiveClock(time.Now())
	sessions := runs.NewRegistry()
	sessions.Dial = func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("connection refused")
	}
	t.Cleanup(sessions.Close)
	record := func(string) events.EventRecorder { return &events.FakeRecorder{} }
	of := controllers.NewReconcilers(controllers.Settings{
		Image:   "x",
		Clock:   clock,
		Runs:    sessions,
		Servers: silentServers{},
	}, memory, memory, memory,
		record)
	tests, faults := of.Tests, of.Faults
	t.Cleanup(faults.Close)
	for round := range 4 {
		if round == 2 { // from here on with any status
			for _, accepted := range objects {
				object := accepted.DeepCopyObject().(client.Object)
				if memory.Get(t.Context(), client.ObjectKeyFromObject(object), object) != nil {
					continue
				}
				copyStatus(accepted, object)
				p.MustChange(memory.Status().Update(t.Context(), object))
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
func acceptedOf(p *operatortest.Place, d stage.Draw, n int) []client.Object {
	p.T.Helper()
	var drawn []client.Object
	var names []string
	for i := range n {
		var object client.Object
		if i%3 == 2 {
			object = fault(d, fmt.Sprintf("f-%d", i), faultTypes[i/3%len(faultTypes)], names)
		} else {
			object = loadTest(d, fmt.Sprintf("lt-%d", i))
			names = append(names, object.GetName())
		}
		object.SetNamespace(p.Namespace)
		drawn = append(drawn, object)
	}
	accepted := make([]bool, n)
	var creating errgroup.Group
	creating.SetLimit(8)
	for i, object := range drawn {
		statuses := stage.Draw{Rand: rand.New(rand.NewPCG(20261121, uint64(i)+2))}
		creating.Go(func() error {
			err := p.Client.Create(context.Background(), object)
			if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
				return nil
			} else if err != nil {
				return err
			}
			accepted[i] = true
			kept := object.DeepCopyObject().(client.Object)
			switch o := object.(type) {
			case *v1alpha1.RedisLoadTest:
				testStatus(statuses, o)
			case *v1alpha1.RedisFault:
				faultStatus(statuses, o)
			}
			err = p.Client.Status().Update(context.Background(), object)
			if apierrors.IsInvalid(err) {
				copyStatus(kept, object)
				err = nil
			}
			return err
		})
	}
	p.MustChange(creating.Wait())
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
			p.T.Errorf("no fault of type %s was accepted", faultType)
		}
	}
	refused := n - len(objects)
	p.T.Logf("%d accepted, %d refused", len(objects), refused)
	if len(objects) < n/4 || refused == 0 {
		p.T.Errorf("%d accepted, %d refused: the generator does not reach both sides of the limits", len(objects), refused)
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

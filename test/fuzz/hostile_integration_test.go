//go:build integration

package fuzz

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/engine"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// junk is what a hostile load pod reports instead of texts and numbers.
type junk struct {
	name   string
	text   string
	number int64
	count  uint64
	float  float64
}

// junks are texts that no status accepts as they are, and numbers beyond what one holds.
var junks = []junk{
	{"huge", strings.Repeat("x", 64<<10), math.MaxInt64, math.MaxUint64, math.MaxFloat64},
	{"negative", "\x1b]0;owned\x07\r\n\x00", math.MinInt64, 1 << 63, -math.MaxFloat64},
	{"not a number", "\xff\xfe\u202e" + strings.Repeat("\x00", 300), -1, 1<<63 - 1, math.NaN()},
	{"infinite", strings.Repeat("\xff", 4096), 1 << 62, 1 << 62, math.Inf(1)},
}

// into sets everything below v; slices that are empty get two elements.
func (j junk) into(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(j.text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(j.number)
	case reflect.Uint64:
		v.SetUint(j.count)
	case reflect.Float64:
		v.SetFloat(j.float)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		j.into(v.Elem())
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		j.into(key)
		j.into(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Slice:
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		}
		for i := range v.Len() {
			j.into(v.Index(i))
		}
	case reflect.Array:
		for i := range v.Len() {
			j.into(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			j.into(v.Field(i))
		}
	}
}

// lies are the parts of what a load pod reports that a hostile one replaces. Each of the others is that of the real
// load.
var lies = map[string]func(j junk, h *hostileLoad){
	"counts": func(j junk, h *hostileLoad) {
		h.interval = func(iv *record.Interval) {
			for i := range iv.Ops {
				j.into(reflect.ValueOf(&iv.Ops[i].Counts).Elem())
			}
			j.into(reflect.ValueOf(&iv.Probe.Counts).Elem())
		}
	},
	"lists": func(j junk, h *hostileLoad) {
		h.interval = func(iv *record.Interval) {
			for _, list := range []any{
				&iv.Tallies, &iv.Shards, &iv.ProbeShards, &iv.Gaps, &iv.ProbeGaps, &iv.PartGaps,
				&iv.Stalls, &iv.Agents,
			} {
				j.into(reflect.ValueOf(list).Elem())
			}
		}
	},
	"instants": func(j junk, h *hostileLoad) {
		h.interval = func(iv *record.Interval) {
			iv.FirstError = j.number
			iv.LastError = j.number
			iv.FirstOK = j.number
			iv.LastOK = j.number
			iv.MaxLag = j.number
			iv.Connections = int(j.number)
		}
	},
	"servers": func(j junk, h *hostileLoad) {
		h.interval = func(iv *record.Interval) {
			at, address := iv.Index*int64(h.plan.Interval), "127.0.0.1:6379"
			iv.Servers = make([]record.Server, 2)
			j.into(reflect.ValueOf(&iv.Servers).Elem())
			iv.Servers[0].At, iv.Servers[0].Address, iv.Servers[0].Role = at, address, "master"
			j.into(reflect.ValueOf(&iv.Unobserved).Elem())
		}
	},
	"status": func(j junk, h *hostileLoad) {
		h.server = new(record.Server)
		j.into(reflect.ValueOf(h.server).Elem())
		h.layout = &topology.Map{Kind: topology.KindReplication}
		for range 100 {
			h.layout.Shards = append(h.layout.Shards, topology.Shard{ID: j.text, Primary: j.text, Replicas: []string{j.text}})
		}
		h.progress = j.text
	},
	"ledger": func(j junk, h *hostileLoad) {
		h.ledger = new(record.Ledger)
		j.into(reflect.ValueOf(h.ledger).Elem())
		h.ledger.Unread = ""
	},
	"start":   func(j junk, h *hostileLoad) { h.started = time.Unix(0, j.number) },
	"failure": func(j junk, h *hostileLoad) { h.fails = &plan.Error{Reason: plan.Reason(j.text), Message: j.text} },
	"unprepared": func(j junk, h *hostileLoad) {
		h.unprepared = &plan.Error{
			Reason:  plan.Reason(j.text),
			Message: j.text,
		}
	},
}

// hostileLoad is a real load whose load pod lies about it.
type hostileLoad struct {
	*engine.Runner
	plan     *plan.Plan
	interval func(*record.Interval)
	server   *record.Server
	layout   *topology.Map
	progress string
	ledger   *record.Ledger
	started  time.Time
	fails    error

	unprepared error
}

func (h *hostileLoad) Prepare(ctx context.Context, progress func(string)) error {
	if h.progress != "" {
		progress(h.progress)
		await.Pass(time.Second, "the operator asks for the progress meanwhile")
	}
	if h.unprepared != nil {
		return h.unprepared
	}
	return h.Runner.Prepare(ctx, progress)
}

func (h *hostileLoad) StartedAt() time.Time {
	if !h.started.IsZero() {
		return h.started
	}
	return h.Runner.StartedAt()
}

func (h *hostileLoad) Run(ctx context.Context, start time.Time, sink func(*record.Interval)) error {
	err := h.Runner.Run(ctx, start, func(iv *record.Interval) {
		if h.interval != nil {
			h.interval(iv)
		}
		sink(iv)
	})
	if h.fails != nil {
		return h.fails
	}
	return err
}

func (h *hostileLoad) Server() *record.Server {
	if h.server != nil {
		return h.server
	}
	return h.Runner.Server()
}

func (h *hostileLoad) Layout() *topology.Map {
	if h.layout != nil {
		return h.layout
	}
	return h.Runner.Layout()
}

func (h *hostileLoad) Verify(ctx context.Context, progress func(string)) (*record.Ledger, error) {
	if h.ledger != nil {
		return h.ledger, nil
	}
	return h.Runner.Verify(ctx, progress)
}

// refusals keeps the lines of a log in which an API server refuses an object.
type refusals struct {
	mu    sync.Mutex
	lines []string
}

func (r *refusals) log(prefix, args string) {
	if line := prefix + args; strings.Contains(line, "is invalid") || strings.Contains(line, "panic") {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lines = append(r.lines, line[:min(len(line), 900)])
	}
}

func (r *refusals) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lines
}

// Whatever a load pod reports, the API server accepts the status that is made of it: the load test ends, and so does a
// fault on it.
func TestHostileLoadPodsAndTheirStatuses(t *testing.T) {
	t.Parallel()
	p := operatortest.NewPlace(t)
	redis := operatortest.StartRedis(p)
	refused := &refusals{}
	p.Logger = funcr.New(refused.log, funcr.Options{Verbosity: 5})
	kubelet := operatortest.StartKubelet(p, nil)
	kubelet.Load = func(plan *plan.Plan, pod int) (agent.Runner, error) {
		runner, err := engine.New(plan, pod)
		h := &hostileLoad{Runner: runner, plan: plan}
		for lie, tell := range lies {
			for i, j := range junks {
				if plan.Workload.Keyspace.Prefix == nameOfLie(lie, i) {
					tell(j, h)
				}
			}
		}
		return h, err
	}
	operatortest.StartOperator(p, operatortest.Spy{})
	for lie := range lies {
		for i := range junks {
			name := nameOfLie(lie, i)
			p.Create(operatortest.NewLoadTest(name, redis.Address(), func(test *v1alpha1.RedisLoadTest) {
				if lie == "ledger" {
					operatortest.Verifies(test)
				}
				test.Spec.Workload.Keyspace.Prefix = name
				test.Spec.Client.Connections = 1
				test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(50)), Duration: operatortest.Length(5 * time.Second)}
				test.Spec.Pods.StartDeadline = *operatortest.Length(15 * time.Second)
			}))
			p.Create(operatortest.NewFault(name, name, v1alpha1.FaultExternal, func(f *v1alpha1.RedisFault) {
				f.Spec.Select = v1alpha1.FaultSelector{}
				f.Spec.Trigger.After = operatortest.Length(0)
				f.Spec.RecoveryDeadline = *operatortest.Length(2 * time.Second)
				f.Spec.Action.External = &v1alpha1.External{WaitFor: metav1.Duration{Duration: 5 * time.Second}}
			}))
		}
	}
	allEnd(p, time.Minute)
	if lines := refused.all(); len(lines) > 0 {
		t.Errorf("%d statuses were refused: %s", len(lines), strings.Join(lines[:min(len(lines), 30)], "\n"))
	}
}

// allEnd waits until all load tests and faults of the place are over.
func allEnd(p *operatortest.Place, within time.Duration) {
	p.T.Helper()
	over(p, within, true)
}

// faultsEnd waits until all faults of the place are over.
func faultsEnd(p *operatortest.Place, within time.Duration) {
	p.T.Helper()
	over(p, within, false)
}

func over(p *operatortest.Place, within time.Duration, loads bool) {
	p.T.Helper()
	var over []string
	await.Within(p.T, within, "all are over", func() error {
		var left []string
		over = nil
		note := func(what, name string, conditions []metav1.Condition) {
			text := fmt.Sprintf("%s %s: %.300s", what, name, operatortest.Where(conditions))
			if state.IsFinished(conditions) {
				over = append(over, text)
			} else {
				left = append(left, text)
			}
		}
		var tests v1alpha1.RedisLoadTestList
		var faults v1alpha1.RedisFaultList
		p.MustChange(p.Client.List(p.T.Context(), &tests, client.InNamespace(p.Namespace)))
		p.MustChange(p.Client.List(p.T.Context(), &faults, client.InNamespace(p.Namespace)))
		for i := range tests.Items {
			if !loads {
				break
			}
			note("load test", tests.Items[i].Name, tests.Items[i].Status.Conditions)
		}
		for i := range faults.Items {
			f := &faults.Items[i]
			note("fault", f.Name, f.Status.Conditions)
			if operatortest.Reason(f.Status.Conditions) == v1alpha1.ReasonWaitingForMark && f.Annotations == nil {
				p.MustChange(operatortest.Change(p, f, func(f *v1alpha1.RedisFault) {
					f.Annotations = map[string]string{
						v1alpha1.AnnotationMark: "now",
					}
				}))
			}
		}
		return await.That(len(left) == 0, "not over:\n%s\nover:\n%s", strings.Join(left, "\n"), strings.Join(over, "\n"))
	})
	p.T.Logf("over:\n%s", strings.Join(over, "\n"))
}

// nameOfLie is the name of a load test whose pod lies.
func nameOfLie(lie string, junk int) string { return fmt.Sprintf("%s-%d", lie, junk) }

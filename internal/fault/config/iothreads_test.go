package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// modifiable simulates a server that takes io-threads while it runs, as Valkey 9 does. The tests have no such server.
type modifiable struct {
	values   map[string]string
	counters map[string]int
	refuses  error  // of CONFIG SET
	info     string // instead of that of a server that counts subcommands and has no configuration file
}

// at makes the servers of a world reply as it does.
func (m *modifiable) at(w *faulttest.World) {
	for _, command := range []string{"CONFIG GET", "CONFIG SET", "INFO everything"} {
		w.Servers.Script(command, faulttest.By(m.do))
	}
}

func (m *modifiable) do(_ string, words []string) (any, error) {
	switch words[0] + " " + words[1] {
	case "CONFIG GET":
		var found []any
		for _, name := range words[2:] {
			if value, ok := m.values[name]; ok {
				found = append(found, name, value)
			}
		}
		return found, nil
	case "CONFIG SET":
		for i := 2; i < len(words); i += 2 {
			if m.values[words[i]] != words[i+1] && m.refuses != nil {
				return nil, m.refuses
			}
		}
		for i := 2; i < len(words); i += 2 {
			m.values[words[i]] = words[i+1]
		}
		return "OK", nil
	case "INFO everything":
		text := "run_id:run-u0\r\n" + cmp.Or(m.info, "config_file:\r\ncmdstat_config|get:calls=1\r\n")
		for _, name := range slices.Sorted(maps.Keys(m.counters)) {
			text += fmt.Sprintf("%s:%d\r\n", name, m.counters[name])
		}
		return text, nil
	}
	return nil, fmt.Errorf("unexpected %v", words)
}

func threadsFault(count int32, method v1alpha1.ApplyMethod, allow ...v1alpha1.Allowance) *v1alpha1.RedisFaultSpec {
	return &v1alpha1.RedisFaultSpec{
		Action: v1alpha1.Action{Type: v1alpha1.FaultIOThreads, IOThreads: &v1alpha1.IOThreads{Count: count, Method: method}},
		Allow:  allow,
	}
}

func TestIOThreadsLive(t *testing.T) {
	w := faulttest.NewWorld(t)
	w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5")}
	})
	server := &modifiable{
		values: map[string]string{"io-threads": "1"},
		counters: map[string]int{
			"io_threaded_reads_processed":  70,
			"io_threaded_writes_processed": 7,
			"total_commands_processed":     100,
		},
	}
	server.at(w)
	injector, err := Kinds.For(threadsFault(4, v1alpha1.ApplyAuto), w.Deps())
	if err != nil {
		t.Fatal(err)
	}
	found, err := guard.Choose(t.Context(),
		faulttest.On(w.Deps(), faulttest.ByPods(map[string]string{"app": "redis"})).Redis,
		&v1alpha1.RedisFaultSpec{Select: v1alpha1.FaultSelector{}}, contract.Traits{})
	if err != nil {
		t.Fatal(err)
	}
	c := &faulttest.Case{World: w, Injector: injector, Target: &found[0]}
	if err := injector.Preflight(t.Context(), c.Target); err != nil {
		t.Fatal(err)
	}
	if how := faulttest.Recorded[threadsRecord](t, c.Target).Way; how != byLive {
		t.Errorf("method %s", how)
	}
	c.Effect(v1alpha1.EffectNotObserved, "still 1 instead of 4")
	server.refuses = redis.Error("ERR Can't update IO threads under load, try again later")
	if err := faulttest.Called(injector.Inject(t.Context(), c.Target)); err == nil {
		t.Error("injection succeeded though the server refused")
	}
	server.refuses = nil
	c.Inject()
	c.Inject()
	if begun, err := injector.Begun(t.Context(), c.Target); !begun || err != nil {
		t.Errorf("begun: %v, %v", begun, err)
	}
	// counts from before the injection are no evidence
	c.Effect(v1alpha1.EffectInconclusive, "handled 0 reads and 0 writes")
	server.counters = map[string]int{
		"io_threaded_reads_processed":  70,
		"io_threaded_writes_processed": 7,
		"total_commands_processed":     100 + traffic,
	}
	c.Effect(v1alpha1.EffectInconclusive, "8 or more clients")
	server.counters["io_threaded_writes_processed"]++
	c.Effect(v1alpha1.EffectConfirmed, "0 reads and 1 writes")
	server.refuses = redis.Error("ERR Can't update IO threads under load, try again later")
	var steps *faulttest.Pending
	if err := faulttest.Called(injector.Revert(t.Context(), c.Target)); !errors.As(err, &steps) {
		t.Errorf("got %v for a server that asks to retry, want no final error", err)
	}
	server.refuses = nil
	c.Revert()
	c.Revert()
	if server.values["io-threads"] != "1" {
		t.Errorf("io-threads is %s in the end", server.values["io-threads"])
	}
}

// A server that has the number already is not changed: an experiment may use the present setting.
func TestIOThreadsWithoutChange(t *testing.T) {
	w := faulttest.NewWorld(t)
	w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
	server := &modifiable{
		values:   map[string]string{"io-threads": "1", "io-threads-do-reads": "no"},
		counters: map[string]int{"total_commands_processed": 5},
	}
	server.at(w)
	target := &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u0", RunID: "run-u0", Address: "10.0.0.1:6379"}
	injector, err := Kinds.For(threadsFault(1, v1alpha1.ApplyAuto), w.Deps())
	if err != nil {
		t.Fatal(err)
	}
	c := &faulttest.Case{World: w, Injector: injector, Target: target}
	if err := injector.Preflight(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if how := faulttest.Recorded[threadsRecord](t, target).Way; how != byNothing {
		t.Errorf("method %s", how)
	}
	c.Inject()
	server.counters = map[string]int{"total_commands_processed": 5 + traffic}
	c.Effect(v1alpha1.EffectConfirmed, "threads handled 0 reads and 0 writes")
	c.Revert()
}

func TestIOThreadsRefused(t *testing.T) {
	immutable := redis.Error(
		"ERR CONFIG SET failed (possibly related to argument 'io-threads') - can't set immutable config")
	for _, tc := range []struct {
		name     string
		values   map[string]string
		set      error
		method   v1alpha1.ApplyMethod
		change   func(*corev1.Pod)
		wantText string
	}{
		{"a server without threads", nil, nil, v1alpha1.ApplyAuto, nil, "has no setting io-threads"},
		{
			"live at a server that does not support it",
			map[string]string{"io-threads": "1"},
			immutable,
			v1alpha1.ApplyLive,
			nil,
			"Live is not possible",
		},
		{
			"a pod without a StatefulSet",
			map[string]string{"io-threads": "1"},
			immutable,
			v1alpha1.ApplyAuto,
			func(p *corev1.Pod) {
				p.OwnerReferences = []metav1.OwnerReference{
					{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "r", Controller: new(true)},
				}
			},
			"does not belong to a StatefulSet",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := faulttest.NewWorld(t)
			w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, tc.change)
			server := &modifiable{values: tc.values}
			server.at(w)
			w.Servers.Script("CONFIG SET", faulttest.Reply(tc.set))
			injector, err := Kinds.For(threadsFault(2, tc.method, v1alpha1.AllowTooFewCores), w.Deps())
			if err != nil {
				t.Fatal(err)
			}
			err = injector.Preflight(t.Context(), &v1alpha1.FaultTarget{
				Pod:       "redis-0",
				UID:       "u0",
				Address:   "10.0.0.1:6379",
				Container: "redis",
			})
			if problem := faulttest.ProblemOf(t, err); problem.Reason != v1alpha1.ReasonNotSupported || !problem.Lasting ||
				!strings.Contains(problem.Message, tc.wantText) {
				t.Errorf("%+v", problem)
			}
		})
	}
}

// If a CONFIG REWRITE wrote the number of the fault into a file on a volume, every start restores it: the revert
// reports this.
func TestIOThreadsInTheFile(t *testing.T) {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: faulttest.Namespace, Name: "redis", UID: "s"}}
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "redis"}}
	w := faulttest.NewWorld(t, set)
	w.Pod("redis-0", "u1", "10.0.0.1", topology.Primary, nil)
	server := &modifiable{values: map[string]string{"io-threads": "4"}}
	server.at(w)
	injector, err := Kinds.For(threadsFault(4, v1alpha1.ApplyRoll), w.Deps())
	if err != nil {
		t.Fatal(err)
	}
	target := &v1alpha1.FaultTarget{Pod: "redis-0", UID: "u0"}
	faulttest.Save(t, target, threadsRecord{Way: byRoll, Count: "1", Template: &templateEdit{
		StatefulSet:  "redis",
		UID:          "s",
		optionSource: optionSource{Container: "redis"},
		After:        []string{"--io-threads", "4"},
		Strategy:     appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType},
	}})
	if err := faulttest.Called(injector.Revert(t.Context(), target)); err == nil ||
		!strings.Contains(err.Error(), "still has io-threads 4 instead of 1") {
		t.Errorf("revert: %v", err)
	}
	server.values["io-threads"] = "1"
	if err := faulttest.Called(injector.Revert(t.Context(), target)); err != nil {
		t.Error(err)
	}
}

func TestIOThreadsCores(t *testing.T) {
	redis7 := memredis.State{Name: "redis", Version: "7.0.15"}
	redis8 := memredis.State{Name: "redis", Version: "8.0.2"}
	valkey := memredis.State{Name: "valkey", Version: "8.1.1"}
	for _, tc := range []struct {
		name     string
		server   memredis.State
		limit    string // of the container; "" = the node's 4 cores
		count    int32
		allow    []v1alpha1.Allowance
		wantText string // "" = accepted
	}{
		{"enough", redis7, "5", 4, nil, ""},
		{"no spare core", redis7, "4", 4, nil, "4 threads require 5 cores"},
		{"figures of Redis", redis7, "2", 4, nil, "1,834 SET/s instead of 132,978"},
		{"figures of Valkey", valkey, "1500m", 2, nil, "5,603 SET/s instead of 192,307"},
		{"a limit of part of a core", valkey, "1500m", 2, nil, "container redis is 1.5"},
		{"threads that sleep", redis8, "1", 4, nil, ""},
		{"the node's size", redis7, "", 3, nil, ""},
		{"more than the node's size", redis7, "", 4, nil, "allocatable CPU of node node-1 is 4"},
		{"allowed", redis7, "1", 4, []v1alpha1.Allowance{v1alpha1.AllowTooFewCores}, ""},
		{"the main thread alone", redis7, "100m", 1, nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := faulttest.NewWorld(t, &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "node-1"},
				Status:     corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}},
			})
			w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, func(p *corev1.Pod) {
				if tc.limit != "" {
					p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(tc.limit)}
				}
			})
			w.Servers.Start("10.0.0.1:6379", tc.server)
			injector := newIOThreads(threadsFault(tc.count, v1alpha1.ApplyAuto, tc.allow...), w.Deps()).(ioThreads)
			err := injector.roomForThreads(t.Context(), &v1alpha1.FaultTarget{Pod: "redis-0", Address: "10.0.0.1:6379"})
			if tc.wantText == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if problem := faulttest.ProblemOf(t, err); problem.Reason != v1alpha1.ReasonBlastRadius || !problem.Lasting ||
				!strings.Contains(problem.Message, tc.wantText) || !strings.Contains(problem.Message, "spec.allow: [TooFewCores]") {
				t.Errorf("%+v, want %q", problem, tc.wantText)
			}
		})
	}
	t.Run("nothing is known of the node", func(t *testing.T) {
		w := faulttest.NewWorld(t)
		w.Pod("redis-0", "u0", "10.0.0.1", topology.Primary, nil)
		injector := newIOThreads(threadsFault(4, v1alpha1.ApplyAuto), w.Deps()).(ioThreads)
		if problem := faulttest.ProblemOf(t,
			injector.roomForThreads(t.Context(), &v1alpha1.FaultTarget{
				Pod:     "redis-0",
				Address: "10.0.0.1:6379",
			})); !strings.Contains(problem.Message, "node node-1 has cannot be read") {
			t.Errorf("%+v", problem)
		}
	})
}

func TestIOThreadsJudge(t *testing.T) {
	for _, tc := range []struct {
		count              int32
		threaded, commands int64
		want               v1alpha1.Effect
	}{
		{4, 1, 2, v1alpha1.EffectConfirmed},
		{4, 0, traffic, v1alpha1.EffectInconclusive},
		{4, 0, 0, v1alpha1.EffectInconclusive},
		{1, 0, traffic, v1alpha1.EffectConfirmed},
		{1, 0, traffic - 1, v1alpha1.EffectInconclusive},
		{1, 5, traffic, v1alpha1.EffectInconclusive},
	} {
		if got, evidence := (ioThreads{count: tc.count}).judge(tc.threaded, tc.commands, ""); got != tc.want {
			t.Errorf("%+v: %s (%s)", tc, got, evidence)
		}
	}
}

// The server is not known yet when the traits are determined.
func TestIOThreadsTraits(t *testing.T) {
	for method, rolls := range map[v1alpha1.ApplyMethod]bool{
		v1alpha1.ApplyAuto: true,
		v1alpha1.ApplyRoll: true,
		v1alpha1.ApplyLive: false,
	} {
		traits := newIOThreads(threadsFault(2, method), contract.Deps{}).Traits()
		if traits.RollsPods != rolls || traits.Lasts != v1alpha1.DefaultFaultDuration || traits.EndsServer {
			t.Errorf("%s: %+v", method, traits)
		}
	}
}

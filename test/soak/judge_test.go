package soak

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/api/v1alpha1"
)

var start = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

func after(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

func micro(seconds float64) *metav1.MicroTime { return new(metav1.NewMicroTime(after(seconds))) }

// well are the facts of a soak in which everything went well: a change of a setting from second 10 to 20, which was
// asked for 10 s, and a load test.
func well() *Facts {
	f := &Facts{
		Marks:       map[string]*Sighting{MarkConfig("single", "1001"): {First: after(10.5), Last: after(19.5)}},
		Polls:       map[string][]time.Time{},
		Records:     map[string]bool{"ns/load-1-results": true},
		Before:      map[string]string{"single: StatefulSet": "a"},
		After:       map[string]string{"single: StatefulSet": "a"},
		Pulses:      []Pulse{{Name: "pulse-1", Created: after(30), Answered: after(31), Watched: after(31)}},
		FirstAnswer: time.Second,
		AtFirst:     Process{Goroutines: 200, Memory: 80 << 20},
		AtLast:      Process{Goroutines: 210, Memory: 90 << 20},
		Faults:      []Seen[*v1alpha1.RedisFault]{{World: "single", Object: aFault()}},
		LoadTests:   []Seen[*v1alpha1.RedisLoadTest]{{World: "single", Object: aLoadTest()}},
		Experiments: []Seen[*v1alpha1.RedisExperiment]{{World: "single", Object: &v1alpha1.RedisExperiment{
			ObjectMeta: metav1.ObjectMeta{Name: "experiment-3"},
			Status:     v1alpha1.RedisExperimentStatus{Conditions: complete(v1alpha1.ReasonSucceeded)},
		}}},
	}
	for second := range 200 {
		f.Able = append(f.Able, Sample{after(float64(second)), true})
		f.Polls["single/redis-0"] = append(f.Polls["single/redis-0"], after(float64(second)+0.5))
	}
	return f
}

func complete(reason string) []metav1.Condition {
	return []metav1.Condition{{Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue, Reason: reason}}
}

func aFault() *v1alpha1.RedisFault {
	return &v1alpha1.RedisFault{
		ObjectMeta: metav1.ObjectMeta{Name: "fault-1", UID: "uid"},
		Spec: v1alpha1.RedisFaultSpec{
			Duration: span(10 * time.Second),
			Action: v1alpha1.Action{Type: v1alpha1.FaultConfig, Config: &v1alpha1.Config{
				Parameters: map[string]v1alpha1.ParameterValue{MarkParameter: "1001"},
			}},
		},
		Status: v1alpha1.RedisFaultStatus{
			Conditions: complete(v1alpha1.ReasonSucceeded),
			InjectedAt: micro(10),
			RevertedAt: micro(20),
			Effect:     v1alpha1.EffectConfirmed,
			Targets: []v1alpha1.FaultTarget{
				{
					Pod:        "redis-0",
					InjectedAt: micro(10),
					ActiveAt:   micro(10),
					RevertedAt: micro(20),
					Revert:     &v1alpha1.RevertRecord{Data: "{}"},
				},
			},
		},
	}
}

func aLoadTest() *v1alpha1.RedisLoadTest {
	return &v1alpha1.RedisLoadTest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "load-1"},
		Status: v1alpha1.RedisLoadTestStatus{
			Conditions:     complete(v1alpha1.ReasonSucceeded),
			StartTime:      micro(1),
			CompletionTime: micro(40),
			Summary:        &v1alpha1.LoadSummary{},
			Results:        &v1alpha1.ResultsReference{ConfigMap: "load-1-results"},
		},
	}
}

// away has no manager between two seconds.
func (f *Facts) away(from, to int) {
	for i := from; i < to; i++ {
		f.Able[i].OK = false
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	event := func(kind Kind, at, over float64) Done {
		d := Done{Event: Event{Kind: kind, World: "single", Name: "fault-1"}, Began: after(at)}
		if over > 0 {
			d.Ended = after(over)
		}
		return d
	}
	seenUntil := func(f *Facts, second float64) { f.Marks[MarkConfig("single", "1001")].Last = after(second) }
	for name, c := range map[string]struct {
		plant func(*Facts)
		want  []Judgement
	}{
		"all is well":       {func(*Facts) {}, nil},
		"a child is left":   {func(f *Facts) { f.Left = []string{"single/v1.Job load-1"} }, []Judgement{Orphan}},
		"a load pod runs":   {func(f *Facts) { f.Running = []string{"single/load-1-abc"} }, []Judgement{Orphan}},
		"another state":     {func(f *Facts) { f.After["single: StatefulSet"] = "b" }, []Judgement{Unreverted}},
		"something is gone": {func(f *Facts) { delete(f.After, "single: StatefulSet") }, []Judgement{Unreverted}},
		"something is new":  {func(f *Facts) { f.After["node-a: taint x"] = "NoSchedule" }, []Judgement{Unreverted}},
		"reverted late": {func(f *Facts) {
			seenUntil(f, 33)
			f.Faults[0].Object.Status.RevertedAt = micro(33)
		}, []Judgement{LateRevert}},
		"reverted late without an API server: the process holds the end": {func(f *Facts) {
			seenUntil(f, 33)
			f.Faults[0].Object.Status.RevertedAt = micro(33)
			f.away(15, 40)
		}, []Judgement{LateRevert}},
		"reverted late, as the manager was killed": {func(f *Facts) {
			seenUntil(f, 32)
			f.Faults[0].Object.Status.RevertedAt = micro(32)
			f.away(15, 31)
			f.Events = append(f.Events, event(ManagerKilled, 15, 31))
		}, nil},
		"reverted late long after the manager is back": {func(f *Facts) {
			seenUntil(f, 60)
			f.Faults[0].Object.Status.RevertedAt = micro(60)
			f.away(15, 31)
			f.Events = append(f.Events, event(ManagerKilled, 15, 31))
		}, []Judgement{LateRevert}},
		"aborted shortly before its end": {func(f *Facts) { f.Events = append(f.Events, event(Abort, 16, 0)) }, nil},
		"aborted early, and there for long": {func(f *Facts) {
			f.Faults[0].Object.Spec.Duration = span(time.Minute)
			seenUntil(f, 40)
			f.Faults[0].Object.Status.RevertedAt = micro(40)
			f.Events = append(f.Events, event(Abort, 20, 0))
		}, []Judgement{LateRevert}},
		"deleted while no manager leads": {func(f *Facts) {
			f.Faults[0].Object.Spec.Duration, f.Faults[0].Gone = span(time.Minute), true
			seenUntil(f, 40)
			f.away(18, 38)
			f.Events = append(f.Events, event(Delete, 20, 0))
		}, nil},
		"a status without an end": {
			func(f *Facts) { f.LoadTests[0].Object.Status.Conditions[0].Status = metav1.ConditionFalse },
			[]Judgement{Unended},
		},
		"no status at all": {
			func(f *Facts) { f.Experiments[0].Object.Status.Conditions = nil },
			[]Judgement{Unended},
		},
		"a deleted one is there": {func(f *Facts) {
			f.Faults[0].Object.DeletionTimestamp = new(
				metav1.NewTime(after(50)))
		}, []Judgement{Unended}},
		"gone ones": {
			func(f *Facts) { f.Experiments[0].Gone, f.Experiments[0].Object.Status.Conditions = true, nil },
			nil,
		},
		"said to be reverted, and seen": {func(f *Facts) {
			f.Faults[0].Object.Status.RevertedAt = micro(
				15)
		}, []Judgement{Untrue}},
		"said to be never injected, and seen": {func(f *Facts) {
			s := &f.Faults[0].Object.Status
			s.InjectedAt, s.RevertedAt, s.Targets, s.Effect = nil, nil, nil, ""
		}, []Judgement{Untrue}},
		"said to be confirmed, and not seen": {func(f *Facts) { clear(f.Marks) }, []Judgement{Untrue}},
		"a dry run, and seen": {
			func(f *Facts) { f.Faults[0].Object.Spec.DryRun = true },
			[]Judgement{Untrue},
		},
		"ended, and a target was not reverted": {
			func(f *Facts) { f.Faults[0].Object.Status.Targets[0].RevertedAt = nil },
			[]Judgement{Untrue},
		},
		"a revert abandoned": {
			func(f *Facts) { f.Faults[0].Object.Status.Targets[0].RevertAbandoned = true },
			[]Judgement{Untrue},
		},
		"ended, and holds": {func(f *Facts) {
			f.Faults[0].Object.Status.Holding = new(
				true)
		}, []Judgement{Untrue}},
		"succeeded without a record": {func(f *Facts) { clear(f.Records) }, []Judgement{Untrue}},
		"succeeded without figures": {
			func(f *Facts) { f.LoadTests[0].Object.Status.Summary = nil },
			[]Judgement{Untrue},
		},
		"a panic": {func(f *Facts) {
			f.Panics = []string{
				"panic: nil map",
			}
		}, []Judgement{Panicked}},
		"a restart by our kill": {func(f *Facts) {
			f.Events = append(f.Events, Done{
				Event:  Event{Kind: ManagerKilled},
				Target: "manager-1",
				Began:  after(50),
				Ended:  after(60),
			})
			f.Restarts = []Restart{{Pod: "manager-1", At: after(50), Code: 137}}
		}, nil},
		"a restart of its own": {func(f *Facts) {
			f.Restarts = []Restart{
				{Pod: "manager-1", At: after(50), Code: 1},
			}
		}, []Judgement{Panicked}},
		"it lost the Lease, and says so": {func(f *Facts) {
			f.Events = append(f.Events, event(LeaseTaken, 50, 60))
			f.Restarts = []Restart{{Pod: "manager-1", At: after(61), Code: 1, Said: "leader election lost"}}
		}, nil},
		"it lost the Lease, and does not say so": {func(f *Facts) {
			f.Events = append(f.Events, event(LeaseTaken, 50, 60))
			f.Restarts = []Restart{{Pod: "manager-1", At: after(61), Code: 2}}
		}, []Judgement{Panicked}},
		"goroutines grow": {func(f *Facts) { f.AtLast.Goroutines = 400 }, []Judgement{Growth}},
		"memory grows":    {func(f *Facts) { f.AtLast.Memory = 200 << 20 }, []Judgement{Growth}},
		"nobody knows":    {func(f *Facts) { f.AtLast = Process{} }, []Judgement{Growth}},
		"a leader that does nothing": {func(f *Facts) {
			f.Pulses = append(f.Pulses, Pulse{Name: "pulse-2", Created: after(60), Watched: after(180)})
		}, []Judgement{NoAnswer}},
		"a leader that does nothing, on a busy machine": {func(f *Facts) {
			for from := 62; from < 180; from += 6 {
				f.away(from, from+3)
			}
			f.Pulses = append(f.Pulses, Pulse{Name: "pulse-2", Created: after(60), Watched: after(180)})
		}, []Judgement{NoAnswer}},
		"a late answer, as leaders changed": {func(f *Facts) {
			for from := 80; from < 180; from += 26 {
				f.away(from, from+6)
			}
			f.Pulses = append(f.Pulses, Pulse{Name: "pulse-2", Created: after(60), Answered: after(180), Watched: after(180)})
		}, nil},
		"a late answer, as nobody led": {func(f *Facts) {
			f.away(60, 120)
			f.Pulses = append(f.Pulses, Pulse{Name: "pulse-2", Created: after(60), Answered: after(125), Watched: after(125)})
		}, nil},
		"nobody leads": {func(f *Facts) { f.away(60, 125) }, []Judgement{NoLeader}},
		"nobody leads, as etcd stands still": {func(f *Facts) {
			f.away(60, 125)
			f.Events = append(f.Events, event(EtcdPaused, 61, 90))
		}, nil},
		"nobody leads long after a manager was killed": {func(f *Facts) {
			f.away(60, 125)
			f.Events = append(f.Events, event(ManagerKilled, 61, 125))
		}, []Judgement{NoLeader}},
		"nobody leads at the end": {func(f *Facts) { f.away(130, 200) }, []Judgement{NoLeader}},
		"no answer at the end":    {func(f *Facts) { f.FirstAnswer = -1 }, []Judgement{NoAnswer}},
		"a late one at the end":   {func(f *Facts) { f.FirstAnswer = 6 * time.Second }, []Judgement{NoAnswer}},
		"an event not carried out": {func(f *Facts) {
			f.Events = append(f.Events, Done{Event: Event{Kind: EtcdPaused}, Err: "no such process"})
		}, []Judgement{NotDone}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := well()
			c.plant(f)
			var got []Judgement
			for _, v := range Judge(f) {
				got = append(got, v.Judgement)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v: %+v", got, c.want, Judge(f))
			}
		})
	}
}

func TestWithin(t *testing.T) {
	t.Parallel()
	f := well()
	f.away(50, 60)
	for _, c := range []struct {
		from, to, settling, want float64
	}{
		{10, 20, 0, 10}, {45, 65, 0, 10}, {45, 65, 3, 7}, {50, 60, 0, 0}, {58.5, 62.5, 0, 2.5}, {190, 300, 0, 14},
	} {
		if got := f.Able.Within(after(c.from), after(c.to),
			time.Duration(c.settling*float64(time.Second))); got.Seconds() != c.want {
			t.Errorf("from %g to %g, settling %g: %s, want %g s", c.from, c.to, c.settling, got, c.want)
		}
	}
	if got := f.Able[:0].Within(start, after(10), 0); got != 0 {
		t.Errorf("without looks: %s", got)
	}
}

// A report counts what was survived: an object with a violation was not, nor was a disturbance after which nobody
// answered.
func TestReport(t *testing.T) {
	t.Parallel()
	plan := Plan{Seed: 7, Length: 3 * time.Minute, Events: []Event{
		{Kind: CreateFault, Type: v1alpha1.FaultConfig, World: "single", Name: "fault-1"},
		{Kind: EtcdPaused},
		{Kind: LeaseTaken, At: time.Minute},
		{Kind: LoadPodDeleted, World: "single"},
	}}
	f := well()
	f.Pulses = append(f.Pulses, Pulse{Name: "pulse-2", Created: after(120), Watched: after(190)})
	f.Marks[MarkConfig("single", "1001")].Last = after(33)
	f.Events = []Done{
		{Event: plan.Events[0], Began: after(1)},
		{Event: plan.Events[1], Began: after(20), Ended: after(25)},
		{Event: plan.Events[2], Began: after(100), Ended: after(110)},
		{Event: plan.Events[3]},
	}
	broken := Judge(f)
	r := NewReport(plan, start, f, broken)
	for label, want := range map[string]Count{
		"fault Config":     {1, 1, 0},
		"etcd paused":      {1, 1, 1},
		"lease taken":      {1, 1, 0},
		"load pod deleted": {1, 0, 0},
	} {
		if r.Events[label] != want {
			t.Errorf("%s: %+v, want %+v", label, r.Events[label], want)
		}
	}
	if r.LateReverts != 1 || r.Untrue != 1 || r.NotAnswered != 1 || r.LatestRevert != 13 || r.EffectsSeen != 1 ||
		r.SlowestAnswer != 1 || r.SlowestWhile != 70 {
		t.Errorf("%+v", r)
	}
	var text bytes.Buffer
	r.Print(&text)
	if got := strings.Count(text.String(), "VIOLATION"); got != len(broken) || got != 3 {
		t.Errorf("%d violations are printed, of %d:\n%s", got, len(broken), text.String())
	}
}

// A fault of each type with a mark has one of its own.
func TestMarks(t *testing.T) {
	t.Parallel()
	marks := map[string]string{}
	for _, e := range Draw(3, 20*time.Minute).Events {
		f, ok := e.Object.(*v1alpha1.RedisFault)
		if !ok {
			continue
		}
		f.UID = types.UID(f.Name)
		mark := markOf(e.World, f)
		if other := marks[mark]; mark != "" && other != "" {
			t.Errorf("%s and %s have the mark %s", f.Name, other, mark)
		}
		marks[mark] = f.Name
	}
	if len(marks) < 20 {
		t.Errorf("only %d faults have marks", len(marks))
	}
}

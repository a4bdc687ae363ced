//go:build integration

package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// hzFault changes a setting for ten minutes: unless it is undone it can be seen.
func hzFault(change func(*v1alpha1.RedisFault)) *v1alpha1.RedisFault {
	return newFault("break", "run", v1alpha1.FaultConfig, func(f *v1alpha1.RedisFault) {
		f.Spec.Config = &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"hz": "50"}}
		f.Spec.Duration, f.Spec.Trigger.After = length(10*time.Minute), length(0)
		if change != nil {
			change(f)
		}
	})
}

// farewell is a fault that is deleted in some state, while something that it needs is lost.
type farewell struct {
	name     string
	on       func(*testing.T) *place // where it needs another cluster; nil = newPlace
	scene    func(*place) scene      // where it needs more than one server; nil = a redisSet
	password string                  // of the server
	spec     func(*v1alpha1.RedisFault)
	state    string // the reason of Complete that is waited for
	lose     func(*place, *redisSet)
	undone   bool // the setting is back to what it was
	stays    bool // what the fault made may stay: who could take it away is gone
}

var farewells = []farewell{
	{name: "waiting for a load that does not come", spec: func(f *v1alpha1.RedisFault) { f.Spec.LoadTestRef.Name = "none" }, state: v1alpha1.ReasonLoadTestNotFound, undone: true},
	{name: "waiting for its time", spec: func(f *v1alpha1.RedisFault) { f.Spec.Trigger.After = length(time.Hour) }, state: v1alpha1.ReasonWaitingForTime, undone: true},
	{name: "held", spec: func(f *v1alpha1.RedisFault) { f.Spec.Suspend = true }, state: v1alpha1.ReasonSuspended, undone: true},
	{name: "active", state: v1alpha1.ReasonActive, undone: true},
	{name: "active, the load test gone", password: "s3cret", state: v1alpha1.ReasonActive, undone: true, lose: func(p *place, _ *redisSet) {
		p.mustChange(p.client.Delete(p.t.Context(), p.loadTest("run")))
		p.until("the load test is gone", 20*time.Second, func() bool { return !p.read(namedTest("run")) }, func() string { return "" })
	}},
	{name: "active, the pod replaced", state: v1alpha1.ReasonActive, undone: true, lose: func(p *place, s *redisSet) {
		p.mustChange(p.client.Delete(p.t.Context(), redisPodOf(p)))
		p.until("the pod is replaced", 20*time.Second, func() bool { return len(s.podsDeleted()) == 1 && s.hz("") == "10" }, func() string { return s.hz("") })
	}},
	{name: "active, the pod gone for good", state: v1alpha1.ReasonActive, lose: func(p *place, s *redisSet) {
		s.leave()
		s.kill()
		p.mustChange(p.client.Delete(p.t.Context(), redisPodOf(p), client.GracePeriodSeconds(0)))
	}},
	{name: "active, Redis silent", state: v1alpha1.ReasonActive, lose: func(_ *place, s *redisSet) { s.silence() }},
	{name: "active, the port closed", state: v1alpha1.ReasonActive, lose: func(_ *place, s *redisSet) {
		s.leave()
		s.kill()
	}},
	{name: "active, the Secret gone", password: "s3cret", state: v1alpha1.ReasonActive, lose: func(p *place, _ *redisSet) {
		p.mustChange(p.client.Delete(p.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "auth"}}))
	}},
	{name: "undoing, Redis silent", state: v1alpha1.ReasonActive, lose: func(p *place, s *redisSet) {
		s.silence()
		p.mustChange(change(p, p.fault("break"), func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
		p.faultStands("break", 20*time.Second, v1alpha1.ReasonReverting)
	}},
	{name: "recovery watched", state: v1alpha1.ReasonObserving, undone: true, spec: func(f *v1alpha1.RedisFault) {
		f.Spec.Type, f.Spec.Config, f.Spec.Duration = v1alpha1.FaultPodKill, nil, nil
	}},
}

// elsewhere are faults of other types than Config, deleted while something that they need is lost.
var elsewhere = []farewell{
	{name: "scaled, the StatefulSet gone", scene: fleetOf(2, nil), spec: asks(v1alpha1.FaultReplicaScale, lastingly(scales(1))), state: v1alpha1.ReasonActive, lose: func(p *place, _ *redisSet) {
		p.mustChange(p.client.Delete(p.t.Context(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace, Name: "redis"}}))
	}},
	{name: "undoing a scaling, Redis silent", scene: fleetOf(2, nil), spec: asks(v1alpha1.FaultReplicaScale, lastingly(scales(1))), state: v1alpha1.ReasonActive, lose: func(p *place, _ *redisSet) {
		silence(p, p.subnet+"2:6379")
		p.mustChange(change(p, p.fault("break"), func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
		p.faultStands("break", 20*time.Second, v1alpha1.ReasonReverting)
	}},
	{name: "a volume held, its node gone", scene: fleetOf(1, onVolume), spec: asks(v1alpha1.FaultVolumeAttachDelay, holdsVolume), state: v1alpha1.ReasonActive, lose: func(p *place, _ *redisSet) {
		p.mustChange(p.client.Delete(p.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: p.namespace + "-a"}}))
	}},
	{name: "a held volume, aborted", scene: fleetOf(1, onVolume), spec: asks(v1alpha1.FaultVolumeAttachDelay, holdsVolume), state: v1alpha1.ReasonActive, lose: func(p *place, _ *redisSet) {
		p.mustChange(change(p, p.fault("break"), func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
	}},
	{name: "active by Chaos Mesh, which is gone", on: newMeshPlace, scene: meshed(nil), spec: asks(v1alpha1.FaultNetworkDelay, byMeshFor(10*time.Minute, delays)), state: v1alpha1.ReasonActive, stays: true, lose: func(p *place, _ *redisSet) {
		p.stopMesh()
	}},
	{name: "active by Chaos Mesh, whose CRD is gone", on: newMeshPlace, scene: meshed(nil), spec: asks(v1alpha1.FaultClockSkew, byMeshFor(10*time.Minute, skews)), state: v1alpha1.ReasonActive, lose: func(p *place, _ *redisSet) {
		p.mustChange(uninstall("timechaos.chaos-mesh.org"))
	}},
}

func asks(kind v1alpha1.FaultType, spec func(*place, *v1alpha1.RedisFaultSpec)) func(*v1alpha1.RedisFault) {
	return func(f *v1alpha1.RedisFault) {
		f.Spec.Type, f.Spec.Config, f.Spec.Duration = kind, nil, nil
		spec(nil, &f.Spec)
	}
}

func lastingly(spec func(*place, *v1alpha1.RedisFaultSpec)) func(*place, *v1alpha1.RedisFaultSpec) {
	return func(p *place, s *v1alpha1.RedisFaultSpec) {
		spec(p, s)
		s.Duration = length(10 * time.Minute)
	}
}

func holdsVolume(_ *place, s *v1alpha1.RedisFaultSpec) {
	s.VolumeAttachDelay = &v1alpha1.VolumeAttachDelay{Delay: *length(10 * time.Minute)}
}

// silence makes a server answer nothing for two minutes.
func silence(p *place, address string) {
	p.t.Helper()
	c := goredis.NewClient(&goredis.Options{Addr: address, DisableIdentity: true})
	defer c.Close()
	p.mustChange(c.Do(p.t.Context(), "CLIENT", "PAUSE", 120_000, "ALL").Err())
}

func redisPodOf(p *place) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: redisName}}
	p.read(pod)
	return pod
}

// A fault that is deleted is gone within a minute, whatever it was doing and whatever is lost. All are deleted at once: most of the minute is waiting.
func TestDeletedFaultIsGoneWithinAMinute(t *testing.T) {
	t.Parallel()
	type leaving struct {
		farewell
		*place
		redis *redisSet
		since time.Time
	}
	faults := map[*leaving]*v1alpha1.RedisFault{}
	leave := func(l *leaving) {
		f := l.fault("break")
		if len(f.Finalizers) == 0 {
			t.Errorf("%s: no finalizer keeps the fault: %s", l.name, where(f.Status.Conditions))
		}
		if l.lose != nil {
			l.lose(l.place, l.redis)
		}
		faults[l] = f
		l.mustChange(l.client.Delete(t.Context(), f))
		l.since = time.Now()
	}
	var all []*leaving
	for _, f := range append(farewells, elsewhere...) {
		l := &leaving{farewell: f, place: placeOn(t, f.on)}
		all = append(all, l)
		var options []string
		if f.password != "" {
			options = []string{"--requirepass", f.password}
			l.create(passwordSecret())
		}
		var target v1alpha1.RedisTarget
		if f.scene != nil {
			target = f.scene(l.place).target
		} else {
			l.redis = startRedis(l.place, options...)
		}
		startKubelet(l.place, nil)
		startOperator(l.place, spy{})
		address := l.subnet + "2:6379"
		l.create(newLoadTest("run", address, func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(20)), Duration: length(time.Hour)}
			if f.scene != nil {
				test.Spec.Target = target
			}
			if f.password != "" {
				test.Spec.Target.Auth = withPassword()
			}
		}))
		l.create(hzFault(f.spec))
		if f.state == v1alpha1.ReasonObserving || f.state == v1alpha1.ReasonLoadTestNotFound { // these do not last
			l.faultStands("break", time.Minute, f.state)
			leave(l)
			continue
		}
		l.faultStands("break", time.Minute, l.state) // before the next one starts: all at once they starve, and a load gives up
		if l.state == v1alpha1.ReasonActive && l.redis != nil && l.redis.hz(l.password) != "50" {
			t.Errorf("%s: hz is %s while the fault is active", l.name, l.redis.hz(l.password))
		}
	}
	for _, l := range all {
		if l.since.IsZero() {
			leave(l)
		}
	}
	exists := func(l *leaving) bool {
		return l.read(&v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "break"}})
	}
	for left := slices.Clone(all); len(left) > 0; time.Sleep(50 * time.Millisecond) {
		left = slices.DeleteFunc(left, func(l *leaving) bool {
			if !exists(l) {
				t.Logf("%s: gone after %s", l.name, time.Since(l.since).Round(100*time.Millisecond))
				return true
			}
			return time.Since(l.since) > time.Minute
		})
	}
	for _, l := range all {
		if exists(l) {
			f := l.fault("break")
			t.Errorf("%s: still there after a minute: %s, targets %+v", l.name, where(f.Status.Conditions), f.Status.Targets)
			continue
		}
		if left := l.leftOf(faults[l]); len(left) > 0 && !l.stays {
			t.Errorf("%s: gone, and left are %v", l.name, left)
		}
		if l.undone && l.redis.hz(l.password) != "10" {
			t.Errorf("%s: gone, and hz is %s", l.name, l.redis.hz(l.password))
		}
	}
}

// leftOf is what a fault left behind: objects that it made, and closed nodes. A probe load is the garbage collector's.
func (p *place) leftOf(f *v1alpha1.RedisFault) []string {
	p.t.Helper()
	left := p.orphansOf(f)
	var nodes corev1.NodeList
	p.mustChange(p.client.List(context.Background(), &nodes, client.MatchingLabels{placeLabel: p.namespace}))
	for _, node := range nodes.Items {
		if node.Spec.Unschedulable {
			left = append(left, "cordon of node "+node.Name)
		}
	}
	return left
}

// What cannot be undone is told: in the condition, in the record and as a warning, with the command that undoes it by hand.
func TestWhatCannotBeUndoneIsTold(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	redis := startRedis(p)
	startKubelet(p, nil)
	startOperator(p, spy{})
	p.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) { test.Spec.Load.Duration = length(time.Hour) }))
	p.create(hzFault(nil))
	p.faultStands("break", time.Minute, v1alpha1.ReasonActive)
	redis.silence()
	p.mustChange(change(p, p.fault("break"), func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
	f := p.faultEnds("break", time.Minute)
	target := f.Status.Targets[0]
	if reason(f.Status.Conditions) != v1alpha1.ReasonRevertFailed || !target.RevertGivenUp || target.RevertedAt != nil || target.LastError == "" {
		t.Errorf("%s; record %+v", where(f.Status.Conditions), target)
	}
	for _, command := range []string{"CONFIG SET", "hz", "10"} {
		if !strings.Contains(target.ByHand, command) || !strings.Contains(where(f.Status.Conditions), command) {
			t.Errorf("no word of %q: by hand %q; %s", command, target.ByHand, where(f.Status.Conditions))
		}
	}
	var warnings []string
	p.until("a warning tells it", 20*time.Second, func() bool {
		warnings = p.warnings("break")
		return strings.Contains(strings.Join(warnings, "\n"), target.ByHand)
	}, func() string { return fmt.Sprint(warnings) })
}

// warnings are the notes of the Warning events about a fault.
func (p *place) warnings(fault string) []string {
	p.t.Helper()
	var all eventsv1.EventList
	if err := p.client.List(context.Background(), &all, client.InNamespace(p.namespace)); err != nil {
		p.t.Fatal(err)
	}
	var notes []string
	for _, e := range all.Items {
		if e.Regarding.Name == fault && e.Type == corev1.EventTypeWarning {
			notes = append(notes, e.Reason+": "+e.Note)
		}
	}
	return notes
}

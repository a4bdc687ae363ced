package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Of a hundred load tests 70 are finished, 29 suspended, and one is pending: its Job has no pods.
// Of a hundred faults 70 are finished, 10 suspended, 15 wait for a suspended load test, and 5 for a
// pending one.
const (
	finishedShare, pendingFrom           = 70, 99 // load tests
	suspendedFaults, waitingForSuspended = 80, 95
)

// createObjects creates the load tests and faults. Those that are finished get their status here; a
// manager brings the others into their states.
func (b *bigCluster) createObjects(ctx context.Context) error {
	c, err := b.typed()
	if err != nil {
		return err
	}
	finished, err := finishedTests()
	if err != nil {
		return err
	}
	for team := range teams {
		if err := c.Create(ctx, redisService(teamName(team))); err != nil {
			return err
		}
	}
	if err := parallel(ctx, b.options.tests, func(ctx context.Context, i int) error {
		return createTest(ctx, c, i, finished)
	}); err != nil {
		return err
	}
	return parallel(ctx, b.options.faults, func(ctx context.Context, i int) error {
		return createFault(ctx, c, i)
	})
}

// typed is a client that also knows the kinds of redquake.dev.
func (b *bigCluster) typed() (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return client.New(b.config, client.Options{Scheme: scheme})
}

// finishedTests are load tests of the lab, with their statuses.
func finishedTests() ([]v1alpha1.RedisLoadTest, error) {
	files, err := filepath.Glob("docs/objects/*.yaml")
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("docs/objects has no finished load tests: %w", err)
	}
	all := make([]v1alpha1.RedisLoadTest, len(files))
	for i, file := range files {
		if err := readYAML(file, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func redisService(namespace string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "redis"},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone,
			Selector:  map[string]string{"app": "redis"},
			Ports:     []corev1.ServicePort{{Port: 6379}},
		},
	}
}

func testName(i int) string {
	return fmt.Sprintf("test-%04d", i)
}

func createTest(
	ctx context.Context, c client.Client, i int, finished []v1alpha1.RedisLoadTest,
) error {
	namespace, share := shareOf(i)
	sample := finished[i%len(finished)]
	t := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace,
		Name:      testName(i),
		Labels:    map[string]string{"app.kubernetes.io/part-of": "shop"},
	}, Spec: *sample.Spec.DeepCopy()}
	switch {
	case share < finishedShare:
	case share < pendingFrom:
		t.Spec.Suspend = true
	default: // its target needs no endpoint, and without a Job controller there are no load pods
		t.Spec = pendingSpec(&finished[0].Spec)
	}
	if err := c.Create(ctx, t); err != nil {
		return fmt.Errorf("create %s: %w", t.Name, err)
	}
	if share >= finishedShare {
		return nil
	}
	sample.Status.DeepCopyInto(&t.Status)
	return c.Status().Update(ctx, t)
}

func pendingSpec(of *v1alpha1.RedisLoadTestSpec) v1alpha1.RedisLoadTestSpec {
	spec := *of.DeepCopy()
	spec.Target.Service, spec.Target.Addresses = nil, []string{"redis.example.com:6379"}
	spec.Pods.StartDeadline = metav1.Duration{Duration: 24 * time.Hour}
	return spec
}

// shareOf is an object's namespace, and its number modulo 100, by which its state is chosen.
func shareOf(i int) (namespace string, share int) {
	return teamName(i / 100), i % 100
}

func createFault(ctx context.Context, c client.Client, i int) error {
	namespace, share := shareOf(i)
	f := &v1alpha1.RedisFault{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace,
			Name:      fmt.Sprintf("fault-%04d", i),
			Labels:    map[string]string{"app.kubernetes.io/part-of": "shop"},
		},
		Spec: v1alpha1.RedisFaultSpec{
			LoadTestRef: &v1alpha1.LoadTestReference{Name: testName(i - share + finishedShare + share%10)},
			Deadline:    &metav1.Duration{Duration: 24 * time.Hour},
			Target: &v1alpha1.RedisTarget{
				Service: &v1alpha1.ServiceReference{Name: "redis", Port: 6379},
			},
			Select: v1alpha1.FaultSelector{Role: v1alpha1.RolePrimary},
			Action: v1alpha1.Action{
				Type:    v1alpha1.FaultPodKill,
				PodKill: &v1alpha1.PodKill{GracePeriodSeconds: new(int64(0))},
			},
		},
	}
	switch {
	case share >= waitingForSuspended:
		f.Spec.LoadTestRef.Name = testName(i - share + pendingFrom)
	case share >= finishedShare && share < suspendedFaults:
		f.Spec.Suspend = true
	}
	if err := c.Create(ctx, f); err != nil {
		return fmt.Errorf("create %s: %w", f.Name, err)
	}
	if share >= finishedShare {
		return nil
	}
	f.Status = finishedFault(f)
	return c.Status().Update(ctx, f)
}

// finishedFault is the status of a pod kill that Redis recovered from.
func finishedFault(f *v1alpha1.RedisFault) v1alpha1.RedisFaultStatus {
	t0 := time.Now().Add(-time.Hour)
	at := func(d time.Duration) *metav1.MicroTime { return new(metav1.NewMicroTime(t0.Add(d))) }
	us := func(d time.Duration) *v1alpha1.Duration { return new(v1alpha1.DurationOf(d)) }
	s := v1alpha1.RedisFaultStatus{
		ObservedGeneration: 1,
		StartTime:          at(-time.Second),
		CompletionTime:     at(time.Minute),
		LoadTest:           f.Spec.LoadTestRef.Name,
		LoadStartTime:      at(-time.Minute),
		Target:             f.Spec.Target,
		Workloads:          []string{"StatefulSet/redis"},
		Effect:             v1alpha1.EffectConfirmed,
		EffectEvidence:     "pod redis-0 was replaced on node " + nodeName(0),
		InjectedAt:         at(0),
		InjectedOffset:     us(time.Minute),
		RevertedAt:         at(time.Second),
		RecoveredAt:        at(20 * time.Second),
		SettledTime:        at(30 * time.Second),
		Verdict:            v1alpha1.VerdictPass,
		Display: &v1alpha1.FaultDisplay{
			Target:   "redis-0",
			Dip:      "94%",
			Outage:   "4.01s",
			Recovery: "4.12s",
		},
		Targets: []v1alpha1.FaultTarget{{
			Pod:           "redis-0",
			UID:           "0f7d2a3c-7a53-4a5f-9c67-0d9a4a9e8b11",
			Node:          nodeName(0),
			Role:          v1alpha1.RolePrimary,
			Address:       "10.128.3.4:6379",
			RunID:         "5f1d6c2b7a8e9f0a1b2c3d4e5f60718293a4b5c6",
			Container:     "redis",
			IntendedAt:    at(-time.Second),
			InjectedAt:    at(0),
			InjectionTook: us(3 * time.Millisecond),
			ActiveAt:      at(time.Millisecond),
			RevertedAt:    at(time.Second),
			Attempts:      1,
		}},
		Impact: &v1alpha1.Impact{
			BaselineTPS: "9987.2",
			MinTPS:      "512.1",
			Dip:         &v1alpha1.Dip{Value: "0.949", Of: v1alpha1.DipOfAll},
			Dips:        &v1alpha1.Dips{All: "0.949"},
			TotalOutage: &v1alpha1.BoundedDuration{
				Value:   v1alpha1.DurationOf(4_010 * time.Millisecond),
				AtLeast: v1alpha1.DurationOf(4 * time.Second),
				AtMost:  v1alpha1.DurationOf(4_020 * time.Millisecond),
			},
			ErrorWindow:         v1alpha1.DurationOf(4 * time.Second),
			Recovered:           true,
			RecoveredThroughput: "1.001",
			LostRequests:        40_012,
			Errors:              3_214,
		},
	}
	for i, name := range []string{
		"Injected", "PodTerminating", "PodDeleted", "ReplacementCreated",
		"Scheduled", "FirstError", "ContainerStarted", "Loading", "Ready", "Serves", "FirstSuccess",
		"Recovered",
	} {
		offset := time.Duration(i) * 371 * time.Millisecond
		s.Timeline = append(s.Timeline, v1alpha1.TimelineEvent{
			At:      *at(offset),
			Offset:  *us(offset),
			Event:   name,
			Object:  "redis-0",
			Message: "seen by the operator on node " + nodeName(i),
		})
	}
	for _, name := range []string{"get", "set", "incr"} {
		s.Impact.Operations = append(s.Impact.Operations, v1alpha1.OperationImpact{
			Name: name,
			Outage: &v1alpha1.BoundedDuration{
				Value:   v1alpha1.DurationOf(4_010 * time.Millisecond),
				AtLeast: v1alpha1.DurationOf(4_009 * time.Millisecond),
				AtMost:  v1alpha1.DurationOf(4_011 * time.Millisecond),
			},
			Dip: "0.95",
			Failures: v1alpha1.Failures{
				FirstError: us(time.Millisecond),
				LastError:  us(4 * time.Second),
				Errors:     1_071,
			},
		})
	}
	for _, kind := range []string{
		v1alpha1.ConditionTargetsSelected, v1alpha1.ConditionInjected, v1alpha1.ConditionReverted,
		v1alpha1.ConditionRecovered, v1alpha1.ConditionComplete, v1alpha1.ConditionObjectivesMet,
	} {
		s.Conditions = append(s.Conditions, metav1.Condition{
			Type:               kind,
			Status:             metav1.ConditionTrue,
			Reason:             v1alpha1.ReasonSucceeded,
			LastTransitionTime: metav1.NewTime(t0),
			ObservedGeneration: 1,
			Message:            "pod redis-0 (0f7d2a3c-7a53-4a5f-9c67-0d9a4a9e8b11)",
		})
	}
	for _, kind := range []string{
		v1alpha1.ConditionFailed, v1alpha1.ConditionSuspended,
		v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled,
	} {
		s.Conditions = append(s.Conditions, metav1.Condition{
			Type:               kind,
			Status:             metav1.ConditionFalse,
			Reason:             v1alpha1.ReasonSucceeded,
			LastTransitionTime: metav1.NewTime(t0),
			ObservedGeneration: 1,
		})
	}
	return s
}

//go:build e2e

package soak

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
)

const (
	endTime    = 6 * time.Minute // until all objects have ended: each has limits of its own below that
	deleteTime = 3 * time.Minute // until all are gone with their children
)

// waitManager waits until everything that was disturbed is back: nodes, and a manager that has led for a while.
func (s *soak) waitManager() {
	s.Helper()
	const steady = 15 * time.Second
	err := await.Try(s.Context(), actLimit, func() error {
		var nodes corev1.NodeList
		if err := s.List(s.Context(), &nodes); err != nil {
			return err
		}
		for _, node := range nodes.Items {
			for _, c := range node.Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
					return fmt.Errorf("%s is not ready: %s", node.Name, c.Message)
				}
			}
		}
		var led time.Duration
		s.locked(func() { led = s.facts.Able.Within(time.Now().Add(-steady), time.Now(), 0) })
		return await.That(led > steady-3*time.Second, "a manager led for %s of the last %s", led, steady)
	})
	if err != nil {
		s.Errorf("after the plan: %v", err)
	}
}

// waitEnded waits until every object has ended, or is gone if it was deleted. Those that have not are found by the
// judge.
func (s *soak) waitEnded() {
	err := await.Try(s.Context(), endTime, func() error {
		ctx, cancel := context.WithTimeout(s.Context(), requestLimit)
		defer cancel()
		s.lookAtObjects(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		facts := Facts{}
		for _, f := range s.seen.faults {
			facts.Faults = append(facts.Faults, *f)
		}
		for _, t := range s.seen.loadTests {
			facts.LoadTests = append(facts.LoadTests, *t)
		}
		for _, e := range s.seen.experiments {
			facts.Experiments = append(facts.Experiments, *e)
		}
		left := unended(&facts)
		return await.That(len(left) == 0, "%d objects have not ended: %+v", len(left), left)
	})
	if err != nil {
		s.Logf("after the plan: %v", err)
	}
}

// runningForNothing are load pods that still run a while after their load test has ended.
func (s *soak) runningForNothing() (found []string) {
	err := await.Try(s.Context(), time.Minute, func() error {
		found = nil
		for _, w := range s.worlds {
			var pods corev1.PodList
			if err := s.List(s.Context(), &pods, client.InNamespace(w.namespace), client.HasLabels{
				v1alpha1.LabelLoadTest,
			}); err != nil {
				return err
			}
			for _, pod := range pods.Items {
				if pod.Status.Phase == corev1.PodRunning || pod.Status.Phase == corev1.PodPending {
					found = append(found, fmt.Sprintf("%s/%s, %s", w.Name, pod.Name, pod.Status.Phase))
				}
			}
		}
		return await.That(len(found) == 0, "load pods: %v", found)
	})
	if err != nil {
		s.Logf("after all load tests have ended: %v", err)
	}
	return found
}

// deleteAll deletes all objects, and returns what is left of them. The finished ones are kept as evidence before.
func (s *soak) deleteAll() (left []string) {
	for _, w := range s.worlds {
		for _, kind := range []client.Object{&v1alpha1.RedisExperiment{}, &v1alpha1.RedisFault{}, &v1alpha1.RedisLoadTest{}} {
			if err := s.retried(s.Context(), func(ctx context.Context) error {
				return s.DeleteAllOf(ctx, kind,
					client.InNamespace(w.namespace))
			}); err != nil {
				s.Errorf("delete the objects of %s: %v", w.Name, err)
			}
		}
	}
	err := await.Try(s.Context(), deleteTime, func() error {
		left = nil
		for _, w := range s.worlds {
			of, err := s.leftIn(w)
			if err != nil {
				return err
			}
			left = append(left, of...)
		}
		return await.That(len(left) == 0, "left: %v", left)
	})
	if err != nil {
		s.Logf("after all objects were deleted: %v", err)
		if len(left) == 0 {
			left = []string{err.Error()}
		}
	}
	return left
}

// leftIn is what a world has of load tests, faults and experiments, and of their children.
func (s *soak) leftIn(w *world) (left []string, err error) {
	list := func(of client.ObjectList, is func(client.Object) bool) {
		if failed := s.List(s.Context(), of, client.InNamespace(w.namespace)); failed != nil {
			err = errors.Join(err, failed)
			return
		}
		err = errors.Join(err, meta.EachListItem(of, func(o runtime.Object) error {
			if object := o.(client.Object); is(object) {
				left = append(left, fmt.Sprintf("%s/%s %s", w.Name, strings.TrimPrefix(fmt.Sprintf("%T", o), "*"),
					object.GetName()))
			}
			return nil
		}))
	}
	all := func(client.Object) bool { return true }
	for _, of := range []client.ObjectList{
		&v1alpha1.RedisExperimentList{},
		&v1alpha1.RedisFaultList{},
		&v1alpha1.RedisLoadTestList{},
	} {
		list(of, all)
	}
	child := func(object client.Object) bool {
		for key := range object.GetLabels() {
			if strings.HasPrefix(key, "redquake.dev/") {
				return true
			}
		}
		return object.GetLabels()[v1alpha1.LabelManagedBy] == "redquake"
	}
	for _, of := range []client.ObjectList{
		&batchv1.JobList{},
		&corev1.PodList{},
		&corev1.ConfigMapList{},
		&corev1.SecretList{},
		&corev1.ServiceList{},
		&corev1.PersistentVolumeClaimList{},
	} {
		list(of, child)
	}
	return left, err
}

// warmUp runs a load and a fault, so that the manager has used what it keeps for later.
func (s *soak) warmUp() {
	s.Helper()
	s.settled("at first")
	made := maker{dice: &dice{newRand(2)}, latest: map[string]lately{}}
	for _, w := range s.worlds {
		test := &v1alpha1.RedisLoadTest{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "load-warm-up"},
			Spec:       made.loadSpec(w.World, 10*time.Second),
		}
		s.must("create a load test", s.Create(s.Context(), test))
		fault := &v1alpha1.RedisFault{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "fault-warm-up"},
			Spec: v1alpha1.RedisFaultSpec{
				LoadTestRef:      &v1alpha1.LoadTestReference{Name: test.Name},
				Duration:         span(2 * time.Second),
				RecoveryDeadline: *span(10 * time.Second),
				Action: v1alpha1.Action{
					Type:   v1alpha1.FaultConfig,
					Config: &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"hz": "20"}},
				},
				Trigger: v1alpha1.FaultTrigger{After: span(time.Second)},
			},
		}
		s.must("create a fault", s.Create(s.Context(), fault))
	}
	s.waitEnded()
	if left := s.deleteAll(); len(left) > 0 {
		s.Fatalf("after the warm-up: %v", left)
	}
	s.locked(func() {
		clear(s.seen.faults)
		clear(s.seen.loadTests)
	})
}

//go:build integration

package faultrun

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/apitest"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/cluster"
)

// The largest records that are accepted can be stored at every step to the end of the fault, with all texts of full
// length.
func TestLargestRecordsAreStored(t *testing.T) {
	t.Parallel()
	config, stop, err := cluster.ControlPlane()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	c, err := client.New(config, client.Options{Scheme: apitest.Scheme(t)})
	if err != nil {
		t.Fatal(err)
	}
	namespace := fmt.Sprintf("fault-size-%d", time.Now().UnixNano())
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{56, 80, 500, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			targets := largest(n)
			f := &v1alpha1.RedisFault{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("large-%d", n)},
				Spec: v1alpha1.RedisFaultSpec{
					LoadTestRef: &v1alpha1.LoadTestReference{Name: "cache"}, Select: v1alpha1.FaultSelector{Mode: v1alpha1.SelectAll},
					Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill},
				},
			}
			if err := c.Create(t.Context(), f); err != nil {
				t.Fatal(err)
			}
			store(t, c, f, func(s *v1alpha1.RedisFaultStatus) { s.Targets, s.StartTime = targets, new(metav1.NowMicro()) })
			store(t, c, f, inject)
			store(t, c, f, failToRevert)
			text, err := json.Marshal(f)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d targets, revert records of %d bytes: %d KiB in all", n, len(targets[0].Revert.Data), len(text)>>10)
		})
	}
}

// largest are targets with the largest revert records that are accepted.
func largest(n int) []v1alpha1.FaultTarget {
	tooLarge := sort.Search(16385, func(data int) bool { return CheckSize(manyTargets(n, data)) != nil })
	return manyTargets(n, tooLarge-1)
}

func store(t *testing.T, c client.Client, f *v1alpha1.RedisFault, change func(*v1alpha1.RedisFaultStatus)) {
	t.Helper()
	before := f.DeepCopy()
	change(&f.Status)
	// of such a size it may take longer than its own limit
	await.Until(t, "the API server has stored the status", func() error {
		changed := f.DeepCopy()
		err := c.Status().Patch(t.Context(), changed, client.MergeFrom(before))
		if err != nil && !apierrors.IsTimeout(err) {
			t.Fatal(err)
		}
		if err == nil {
			*f = *changed
		}
		return err
	})
}

func inject(s *v1alpha1.RedisFaultStatus) {
	now := metav1.NowMicro()
	s.InjectedAt = &now
	for i := range s.Targets {
		t := &s.Targets[i]
		t.IntendedAt = &now
		t.InjectedAt = &now
		t.ActiveAt = &now
		t.InjectionTook = new(v1alpha1.DurationOf(123_456 * time.Microsecond))
		t.Attempts = 1
	}
	for i := range 256 {
		s.Timeline = append(s.Timeline, v1alpha1.TimelineEvent{
			At:      now,
			Event:   "Injected",
			Object:  fmt.Sprintf("redis-cluster-%d", i),
			Message: "Config; the call took 1.234ms",
		})
	}
}

func failToRevert(s *v1alpha1.RedisFaultStatus) {
	now, long := metav1.NowMicro(), strings.Repeat("x", 40_000)
	s.RevertingSince = &now
	for i := range s.Targets {
		t := &s.Targets[i]
		t.RevertAttempts = 9
		t.LastError = Shorten(long, MaxError, len(s.Targets))
		t.RevertError = Shorten(long, MaxError, len(s.Targets))
		t.Progress = Shorten(long, MaxProgress, len(s.Targets))
		t.RevertAbandoned, t.ManualRevertCommand = true, Shorten(long, MaxCommand, len(s.Targets))
	}
	for _, kind := range []string{v1alpha1.ConditionComplete, v1alpha1.ConditionFailed, v1alpha1.ConditionReverted} {
		s.Conditions = append(s.Conditions, metav1.Condition{
			Type:               kind,
			Status:             metav1.ConditionFalse,
			Reason:             v1alpha1.ReasonRevertFailed,
			Message:            long[:32_000],
			LastTransitionTime: metav1.Now(),
		})
	}
}

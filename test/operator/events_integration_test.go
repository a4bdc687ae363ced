//go:build integration

package operator

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/stage"
)

// A real API server takes the events about a lost node, its pod and its StatefulSet, and finds them by the fields by
// which kubectl describe asks for them.
// Each is there once, although the operator is restarted meanwhile.
func TestEventsOnARealAPIServer(t *testing.T) {
	t.Parallel()
	p := operatortest.NewPlace(t)
	f := stage.StartFleet(p, 1, stage.OnNodes)
	operatortest.StartKubelet(p, nil)
	o := operatortest.StartOperator(p, operatortest.Spy{})
	pod, set := operatortest.RedisPodOf(p), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "redis"}}
	p.Read(set)
	p.Create(operatortest.NewLoadTest("run", f.Address(0), func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Load.Duration = operatortest.Length(
			time.Hour)
	}))
	p.TestHasReason("run", time.Minute, v1alpha1.ReasonRunning)
	p.Create(operatortest.NewFault("lose", "run", v1alpha1.FaultNodeLoss, func(f *v1alpha1.RedisFault) {
		f.Spec.Trigger.After, f.Spec.RecoveryDeadline = operatortest.Length(0), *operatortest.Length(time.Second)
		f.Spec.Action.NodeLoss, f.Spec.Duration = &v1alpha1.NodeLoss{
			Node: pod.Spec.NodeName,
		}, operatortest.Length(3*time.Second)
	}))
	p.FaultHasReason("lose", time.Minute, v1alpha1.ReasonActive)
	o.Stop()
	operatortest.StartOperator(p, operatortest.Spy{})
	p.FaultHasReason("lose", time.Minute, v1alpha1.ReasonObserving)
	for _, described := range []struct {
		kind, name, namespace string
		uid                   types.UID
	}{
		{"Pod", pod.Name, p.Namespace, pod.UID},
		{"StatefulSet", "redis", p.Namespace, set.UID},
		{"Node", pod.Spec.NodeName, "", types.UID(pod.Spec.NodeName)},
	} {
		selects := client.MatchingFields{
			"involvedObject.kind": described.kind,
			"involvedObject.name": described.name,
			"involvedObject.uid":  string(described.uid),
		}
		var reasons []string
		read := func() bool {
			var all corev1.EventList
			p.MustChange(p.Client.List(context.Background(), &all, client.InNamespace(described.namespace), selects))
			reasons = nil
			for _, e := range all.Items {
				if strings.HasPrefix(e.Message, "RedisFault "+p.Namespace+"/lose: NodeLoss on ") && e.Count == 0 &&
					e.Series == nil {
					reasons = append(reasons, e.Type+" "+e.Reason)
				}
			}
			return len(reasons) >= 2
		}
		p.Until("events on the "+described.kind, 20*time.Second, read, func() string { return strings.Join(reasons, ", ") })
		if got := strings.Join(reasons, ", "); got != "Warning FaultInjected, Normal FaultReverted" &&
			got != "Normal FaultReverted, Warning FaultInjected" {
			t.Errorf("%s %s: %s", described.kind, described.name, got)
		}
	}
}

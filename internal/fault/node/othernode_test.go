package node

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

func TestOtherNodeForPod(t *testing.T) {
	bound := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "disk"},
		Spec: corev1.PersistentVolumeSpec{NodeAffinity: &corev1.VolumeNodeAffinity{
			Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"node-1"}},
				}}},
			},
		}},
	}
	for name, tc := range map[string]struct {
		other    func(*corev1.Node)
		pod      corev1.PodSpec
		volume   *corev1.PersistentVolume
		alone    bool
		wantText string // "" = the pod fits there
	}{
		"fits":     {},
		"no other": {alone: true, wantText: "no node other than node-1"},
		"cordoned": {other: func(n *corev1.Node) { n.Spec.Unschedulable = true }, wantText: "node-2 is unschedulable"},
		"not ready": {
			other:    func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown },
			wantText: "node-2 is not ready",
		},
		"tainted": {other: func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
		}, wantText: "taint gpu"},
		"preferred": {other: func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "x", Effect: corev1.TaintEffectPreferNoSchedule}}
		}},
		"tolerated": {other: func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
		}, pod: corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}}},
		"nodeSelector": {
			pod:      corev1.PodSpec{NodeSelector: map[string]string{corev1.LabelHostname: "node-1"}},
			wantText: "nodeSelector",
		},
		"local volume": {volume: bound, wantText: "volume disk"},
	} {
		t.Run(name, func(t *testing.T) {
			w := faulttest.NewWorld(t)
			w.AddNode("node-1", nil)
			if !tc.alone {
				w.AddNode("node-2", tc.other)
			}
			err := RequireOtherNode(t.Context(), w.Deps(),
				&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "redis-0"}, Spec: tc.pod}, tc.volume, "node-1")
			if tc.wantText == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if problem := faulttest.ProblemOf(t, err); problem.Reason != v1alpha1.ReasonNotSupported ||
				!strings.Contains(problem.Message, tc.wantText) || !strings.Contains(problem.Message, "redis-0") {
				t.Errorf("%+v, want one about %q", problem, tc.wantText)
			}
		})
	}
}

package turns

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/fault/guard"
)

// Which controllers are listed does not depend on the order of a list: two faults on the same Redis must have some in
// common. A warning says how many are left out.
func TestWorkloadsOfALargeRedis(t *testing.T) {
	t.Parallel()
	for _, controllers := range []int{maxWorkloads, maxWorkloads + 6} {
		var pods []corev1.Pod
		var want []string
		for i := range controllers {
			set := fmt.Sprintf("shard-%02d", controllers-1-i) // the last by name comes first
			pods = append(pods, corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop",
					Name:      fmt.Sprintf("pod-%02d", i),
					UID:       types.UID(set),
					OwnerReferences: []metav1.OwnerReference{
						{APIVersion: "apps/v1", Kind: "StatefulSet", Name: set, UID: types.UID(set), Controller: new(true)},
					},
				},
			})
			want = append(want, "StatefulSet/"+set)
		}
		slices.Sort(want)
		got, warnings := WorkloadsOf(guard.Selection{Pods: pods}, contract.Traits{Whole: true})
		if !slices.Equal(got, want[:maxWorkloads]) {
			t.Errorf("%d of %d: %q", len(got), controllers, got)
		}
		if said := strings.Join(warnings,
			"; "); strings.Contains(said, "64 of the 70 controllers") != (controllers > maxWorkloads) ||
			controllers <= maxWorkloads && said != "" {
			t.Errorf("%d controllers: %q", controllers, said)
		}
	}
}

package turns

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/testing/apitest"
)

// Which controllers are listed does not depend on the order of a list: two faults on the same Redis must have some in
// common. A warning says how many are left out.
func TestWorkloadsOfALargeRedis(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"app": "redis"}
	for _, controllers := range []int{maxWorkloads, maxWorkloads + 6} {
		var pods []client.Object
		var want []string
		for i := range controllers {
			set := fmt.Sprintf("shard-%02d", controllers-1-i) // the last by name comes first
			pods = append(pods, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop",
					Name:      fmt.Sprintf("pod-%02d", i),
					UID:       types.UID(set),
					Labels:    labels,
					OwnerReferences: []metav1.OwnerReference{
						{APIVersion: "apps/v1", Kind: "StatefulSet", Name: set, UID: types.UID(set), Controller: new(true)},
					},
				},
			})
			want = append(want, "StatefulSet/"+set)
		}
		slices.Sort(want)
		api := apitest.Paged(fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithObjects(pods...).Build())
		s := &scope.Fault{Traits: contract.Traits{Whole: true}, Deps: contract.Deps{Redis: target.Redis{
			Namespace: "shop", Live: api, Spec: &v1alpha1.RedisTarget{PodSelector: &metav1.LabelSelector{MatchLabels: labels}},
		}}}
		got, warnings, err := WorkloadsOf(t.Context(), s, nil)
		if err != nil || !slices.Equal(got, want[:maxWorkloads]) {
			t.Errorf("%v, %d of %d: %q", err, len(got), controllers, got)
		}
		if said := strings.Join(warnings,
			"; "); strings.Contains(said, "64 of the 70 controllers") != (controllers > maxWorkloads) ||
			controllers <= maxWorkloads && said != "" {
			t.Errorf("%d controllers: %q", controllers, said)
		}
	}
}

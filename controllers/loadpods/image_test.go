package loadpods

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestOwnImage: the image is that of the manager's container, also beside others; without one, or without the pod,
// nothing is guessed.
func TestOwnImage(t *testing.T) {
	own := client.ObjectKey{Namespace: "redquake-system", Name: "manager-1"}
	for name, tc := range map[string]struct {
		containers  []corev1.Container // nil = there is no pod
		image, says string
	}{
		"alone": {containers: []corev1.Container{{Name: "manager", Image: "mirror/redquake@sha256:1"}}, image: "mirror/redquake@sha256:1"},
		"behind a proxy": {
			containers: []corev1.Container{{Name: "istio-proxy", Image: "istio"}, {Name: "manager", Image: "mirror/redquake:1"}},
			image:      "mirror/redquake:1",
		},
		"another name": {
			containers: []corev1.Container{{Name: "operator", Image: "mirror/redquake:1"}, {Name: "proxy"}},
			says:       "has no container manager, but operator, proxy",
		},
		"no pod": {says: `read the operator's own pod: pods "manager-1" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder()
			if tc.containers != nil {
				api.WithObjects(&corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Namespace: own.Namespace, Name: own.Name},
					Spec:       corev1.PodSpec{Containers: tc.containers},
				})
			}
			image, err := OwnImage(t.Context(), api.Build(), own)
			if image != tc.image || (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%q, %v, want %q, %q", image, err, tc.image, tc.says)
			}
		})
	}
}

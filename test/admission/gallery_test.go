//go:build integration

package admission_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/manifests"
)

// operated are kinds that an operator brings, which an entry says that it needs.
var operated = map[string]bool{"RedisFailover": true}

// The kustomizations of the gallery are accepted as they are, by a cluster that has nothing but the CRDs, and their
// pods by the restricted Pod Security Standard.
func TestGalleryIsAccepted(t *testing.T) {
	makeNamespace(t, "gallery", map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	var folders []string
	for _, pattern := range []string{
		"../../config/gallery/*/kustomization.yaml",
		"../../config/gallery/lab/*/kustomization.yaml",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) < 10 {
			t.Fatalf("%s: %d folders, %v", pattern, len(found), err)
		}
		folders = append(folders, found...)
	}
	for _, file := range folders {
		folder := filepath.Dir(file)
		t.Run(filepath.ToSlash(folder[len("../../config/gallery/"):]), func(t *testing.T) {
			built := exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), "kustomize", folder)
			built.Stderr = os.Stderr
			text, err := built.Output()
			if err != nil {
				t.Fatalf("kubectl kustomize %s: %v", folder, err)
			}
			runs := 0
			for _, o := range manifests.Objects(t, folder, text) {
				o.SetNamespace("gallery")
				err := strict.Create(t.Context(), o.DeepCopy(), client.DryRunAll)
				if operated[o.GetKind()] && meta.IsNoMatchError(err) {
					continue
				}
				if err != nil {
					t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
				}
				if o.GroupVersionKind().Group == v1alpha1.GroupVersion.Group {
					runs++
				}
				tryPod(t, "gallery", o)
			}
			if runs == 0 {
				t.Error("it has no load test, fault or experiment")
			}
		})
	}
}

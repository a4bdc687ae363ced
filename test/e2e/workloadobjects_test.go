//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
)

// objectsFolder names the folder for the objects of TestObjects.
const objectsFolder = "REDQUAKE_OBJECTS_OUT"

// TestObjects runs the sample of each workload as it is, one after the other, and keeps the finished objects for the
// documentation. `make objects` calls it. A run with a doubt about its figures is not kept.
func TestObjects(t *testing.T) {
	folder := os.Getenv(objectsFolder)
	if folder == "" {
		t.Fatalf("%s names no folder; run `make objects`", objectsFolder)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	n := makeNamespace(t, metav1.ObjectMeta{Name: "shop"}) // it is in the addresses of the objects
	n.applyBackends()
	for i := range workloadRuns {
		w := &workloadRuns[i]
		t.Run(w.name, func(t *testing.T) {
			n := n.in(t)
			if err := n.redis().FlushAll(t.Context()).Err(); err != nil { // the memory in the status is that of this run
				t.Fatal(err)
			}
			before := loadAverage(t)
			n.create(w.of(n))
			test := n.waitLoadTest(w.name, 10*time.Minute, v1alpha1.ReasonSucceeded)
			w.checkEnd(n, test)
			if test.Status.Verdict != v1alpha1.VerdictPass {
				_, message, _, _ := completeReason(test.Status.Conditions)
				t.Errorf("verdict %s: %s", test.Status.Verdict, message)
			}
			if !t.Failed() {
				n.keep(w, filepath.Join(folder, w.name+".yaml"), "Load average "+before+" before, "+loadAverage(t)+" after.")
			}
		})
	}
}

// loadAverage is that of the last minute on this machine, which in the lab is all nodes.
func loadAverage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	minute, _, _ := strings.Cut(string(text), " ")
	return fmt.Sprintf("%s on %d cores", minute, runtime.NumCPU())
}

// keep writes a load test as kubectl get -o yaml shows it, without what only this object of this cluster has.
func (n *namespace) keep(w *workloadRun, file, note string) {
	n.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RedisLoadTest"))
	if !n.get(w.name, object) {
		n.Fatalf("there is no RedisLoadTest %s", w.name)
	}
	for _, field := range []string{"uid", "resourceVersion", "managedFields"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	text, err := yaml.Marshal(object.Object)
	if err != nil {
		n.Fatal(err)
	}
	head := "# A finished run of config/samples/" + w.sample +
		" in the lab, as kubectl get -o yaml shows it. Written by make objects.\n# " + note + "\n"
	if err := os.WriteFile(file, append([]byte(head), text...), 0o644); err != nil {
		n.Fatal(err)
	}
}

//go:build e2e

package e2e_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/plan"
)

// TestClientLibraries loads a Redis through every client library, those that are not in Go in a sidecar, whose pod and
// Job end with the load. What a library refuses ends the load with its words.
func TestClientLibraries(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, "clients")
	n.applyRedis(nil)
	for _, driver := range plan.Drivers() {
		load := n.smallLoad(lower(driver), 3*time.Second)
		load.Spec.Client.Driver = v1alpha1.ClientDriver(driver)
		n.create(load)
		done := n.waitLoadTest(load.Name, patience, v1alpha1.ReasonSucceeded)
		if s := done.Status.Summary; s.Requests != 600 || s.Errors != 0 {
			t.Errorf("%s: %d requests, %d errors; want 600 and none", driver, s.Requests, s.Errors)
		}
		n.sumsAgree(done, n.record(done))
		n.eventually(patience, "the Job has completed", func() (bool, string) {
			job := &batchv1.Job{}
			found := n.get(children.LoadJobName(load.Name), job)
			return found && job.Status.CompletionTime != nil || !found, "it runs"
		})
	}

	refused := n.smallLoad("refused", 3*time.Second)
	refused.Spec.Client.Driver = v1alpha1.ClientDriver(plan.RedisPyDriver)
	refused.Spec.Client.Options = &runtime.RawExtension{Raw: []byte(`{"socket_timeot": 1}`)}
	n.create(refused)
	n.fails(refused.Name, patience, string(plan.PlanInvalid), "spec.client.options.socket_timeot: RedisPy: ")
}

// lower is the name of a driver as one of an object.
func lower(d plan.Driver) string { return strings.ToLower(string(d)) }

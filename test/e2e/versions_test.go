//go:build e2e

package e2e_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/redquake/redquake/api/v1alpha1"
)

func TestVersions(t *testing.T) {
	t.Parallel()
	versions(t)
}

// versions loads the newer servers, in place of the Redis of the samples.
func versions(t *testing.T) {
	type version struct{ server, image, major string }
	all := []version{{"redis", "docker.io/library/redis:8", "8."}, {"valkey", "docker.io/valkey/valkey:9", "9."}}
	var in []*namespace
	for _, v := range all {
		n := newNamespace(t, v.server+"-"+strings.TrimSuffix(v.major, "."))
		n.applyRedis(func(object *unstructured.Unstructured) {
			if object.GetKind() == "StatefulSet" {
				n.serve(object, v.server, v.image)
			}
		})
		test := n.smallLoad("newer", 5*time.Second)
		test.Spec.Client.RequestTimeout = *span(20 * time.Second) // an error is not one of a busy machine
		n.create(test)
		in = append(in, n)
	}
	for i, v := range all {
		t.Run(v.image, func(t *testing.T) {
			test := in[i].in(t).waitLoadTest("newer", 2*patience, v1alpha1.ReasonSucceeded)
			if got := test.Status.Target; got == nil || got.Server != v.server || !strings.HasPrefix(got.Version, v.major) {
				t.Errorf("target %+v, want %s %s", got, v.server, v.major)
			}
			if s := test.Status.Summary; s.Requests != 1000 || s.Errors != 0 {
				t.Errorf("%d requests, %d errors; want 1000 and none", s.Requests, s.Errors)
			}
			if s := test.Status.Servers; len(s) != 1 || s[0].CPU == nil || s[0].MainThreadCPU == nil || s[0].RSS.Max < 1<<20 ||
				s[0].BytesIn == "" {
				t.Errorf("servers %s", asJSON(t, s))
			}
		})
	}
}

// serve makes the container of a StatefulSet that of another server.
func (n *namespace) serve(set *unstructured.Unstructured, server, image string) {
	n.Helper()
	containers, _, err := unstructured.NestedSlice(set.Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) != 1 {
		n.Fatalf("%d containers (%v)", len(containers), err)
	}
	c := containers[0].(map[string]any)
	c["image"], c["command"] = image, []any{server + "-server"}
	if err := unstructured.SetNestedStringSlice(c, []string{server + "-cli", "-e", "ping"}, "readinessProbe", "exec",
		"command"); err != nil {
		n.Fatal(err)
	}
	if err := unstructured.SetNestedSlice(set.Object, containers, "spec", "template", "spec", "containers"); err != nil {
		n.Fatal(err)
	}
}

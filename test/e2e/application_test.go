//go:build e2e

package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
)

// TestApplication loads an application in front of Redis that has too little CPU. Its use is in the status, and it is
// the bottleneck.
func TestApplication(t *testing.T) {
	t.Parallel()
	n := newNamespace(t, "application")
	n.applyRedis(nil)
	objects, err := readObjects("testdata/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		n.create(object)
	}
	n.rolledOut("shop")

	test := n.smallLoad("visits", time.Minute)
	test.Spec.Load.Rate, test.Spec.Load.Users = nil, new(int32(8))
	test.Spec.Load.WarmUp = span(15 * time.Second) // the first reading of the metrics API begins before the load
	test.Spec.Client.RequestTimeout = *span(30 * time.Second)
	test.Spec.Client.Connections = 8
	test.Spec.Workload = v1alpha1.Workload{HTTP: &v1alpha1.HTTPWorkload{URL: "http://shop/cgi-bin/visit"}}
	test.Spec.Observe.Pods = []v1alpha1.ObservedPods{
		{Name: "shop", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "shop"}}},
	}
	n.create(test)
	test = n.waitLoadTest("visits", 2*patience, v1alpha1.ReasonSucceeded)

	pods := test.Status.Pods
	if len(pods) != 1 || pods[0].Name != "shop" || pods[0].Count != 1 || pods[0].CPU == nil || pods[0].CPU.Limit == nil ||
		*pods[0].CPU.Limit != 200 ||
		pods[0].CPU.Max < 180 || pods[0].Memory == nil || pods[0].Memory.Max < 1<<20 {
		t.Fatalf("pods %s, want shop with more than 180m of 200m of CPU", asJSON(t, pods))
	}
	if b := test.Status.Bottleneck; b == nil || b.Component != "Application" || b.Pods != "shop" ||
		!strings.Contains(b.Evidence, "its limit of 0.20 cores") {
		t.Fatalf("bottleneck %s, want the application", asJSON(t, b))
	}
	if s := test.Status.Servers; len(s) != 1 || s[0].Pod != "redis-0" || s[0].Role != v1alpha1.ServerPrimary ||
		s[0].CPU == nil || s[0].CPU.Limit == nil || *s[0].CPU.Limit != 1000 || s[0].BytesIn == "" || s[0].RSS.Max < 1<<20 {
		t.Errorf("servers %s, want redis-0", asJSON(t, s))
	}
	if r := test.Status.RoundTrip; r == nil || r.Idle == nil || r.Idle.Duration == 0 || r.UnderLoad == nil ||
		r.ShareOfLatency != "" {
		t.Errorf("round trip %s", asJSON(t, r))
	}
	if p := test.Status.LoadPods; p == nil || p.CPU == nil {
		t.Errorf("load pods %s", asJSON(t, p))
	}
	t.Logf("%s\npods %s\nservers %s\nround trip %s\nload pods %s", test.Status.Bottleneck.Evidence,
		asJSON(t, pods), asJSON(t, test.Status.Servers), asJSON(t, test.Status.RoundTrip), asJSON(t, test.Status.LoadPods))
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

//go:build integration

package dashboard

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/browser"
)

// busy is a cluster with objects in all states, with names and messages that are long.
func busy() *stage {
	s := newStage()
	objectMeta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Name:              name,
			Namespace:         "team-checkout-production",
			CreationTimestamp: metav1.NewTime(time.Now().Add(-26 * time.Hour)),
		}
	}
	conditions := func(failed bool, reason, message string) []metav1.Condition {
		over := metav1.Condition{
			Type: v1alpha1.ConditionComplete, Status: metav1.ConditionTrue, Reason: reason, Message: message,
		}
		if !failed {
			return []metav1.Condition{over}
		}
		return []metav1.Condition{over, {
			Type: v1alpha1.ConditionFailed, Status: metav1.ConditionTrue, Reason: reason, Message: message,
		}}
	}
	unreachable := conditions(true, "TargetUnreachable",
		"checkout-cache-redis-node-0.checkout-cache-redis-headless.team-checkout-production.svc:6379 is not ready within 5s: "+
			"no reply in time")
	display := &v1alpha1.LoadTestDisplay{
		Progress: "100%", TPS: "1414.7", P99: "1.24ms", Errors: "0.09%",
		Faults: "kill-primary-of-checkout-cache Inconclusive", LostWrites: "3-7",
	}
	for _, verdict := range []v1alpha1.Verdict{"Pass", "Fail", "Inconclusive", ""} {
		name := "checkout-cache-" + strings.ToLower(string(verdict))
		status := v1alpha1.RedisLoadTestStatus{Verdict: verdict, Display: display}
		status.Conditions = conditions(false, "Completed", "")
		ofFault := v1alpha1.RedisFaultStatus{
			Verdict: verdict, Conditions: status.Conditions,
			Display: &v1alpha1.FaultDisplay{
				Target: "checkout-cache-redis-node-0", Dip: "100%", Outage: "1.28s", Recovery: "1.28s-7.58s",
				WhileActive: "throughput -12.5%, p99 +340%",
			},
		}
		if verdict == "" {
			status.Conditions, ofFault.Conditions, name = unreachable, unreachable, name+"unreachable"
			ofFault.Display, status.Display = nil, nil
		}
		s.objects = append(s.objects,
			OfLoadTest(&v1alpha1.RedisLoadTest{ObjectMeta: objectMeta(name), Status: status}),
			OfFault(&v1alpha1.RedisFault{
				ObjectMeta: objectMeta(name),
				Spec:       v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultVolumeAttachDelay}},
				Status:     ofFault,
			}),
			OfExperiment(&v1alpha1.RedisExperiment{
				ObjectMeta: objectMeta(name),
				Status: v1alpha1.RedisExperimentStatus{
					Verdict: verdict, Conditions: status.Conditions,
					Display: &v1alpha1.ExperimentDisplay{Progress: "12/48", Cells: "8", Worse: "4/8", Next: "appendfsync=always,users=3000"},
				},
			}))
	}
	return s
}

// On a phone and on a wide screen everything of the pages of a dashboard can be read, above all the verdict of each
// object, whether it has run to its end or not.
func TestPagesInABrowser(t *testing.T) {
	t.Parallel()
	h := busy().handler(Limits{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", "Bearer admin")
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		h.Close()
		server.Close()
	})
	b := browser.Start(t)
	for name, path := range map[string]string{
		"list":         "/",
		"failed":       "/?show=failed&sort=verdict",
		"namespace":    "/team-checkout-production/",
		"no namespace": "/nosuch/",
		"no object":    "/shop/redisloadtests/other",
		"load test":    "/shop/redisloadtests/one",
	} {
		t.Run(name, func(t *testing.T) {
			p := b.Open(t, server.URL+path, browser.View{})
			p.Readable(1280, 800, 400, 320)
			p.Show(browser.View{Width: 400})
			for _, row := range browser.Evaluate[[]string](p, `[...document.querySelectorAll('.list tbody tr')].filter(r => {
				const b = r.querySelector('.badge'), at = b && b.getBoundingClientRect();
				return !at || !at.width || !b.innerText || at.left < 0 || at.right > innerWidth;
			}).map(r => r.innerText)`) {
				t.Errorf("a row without its verdict: %q", row)
			}
			if links := browser.Evaluate[int](p, `document.querySelectorAll('a[href="/"]').length`); links == 0 && path != "/" &&
				!strings.HasPrefix(path, "/?") {
				t.Error("no way back to the list")
			}
		})
	}
}

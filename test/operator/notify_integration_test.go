//go:build integration

package operator

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/experiment/history"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/scheduletest"
	"github.com/redquake/redquake/internal/testing/stage"
)

// A real server that fails, hangs, redirects and then accepts, and a real API server: each is said in the condition,
// and what was accepted came once.
func TestNotificationsOverHTTP(t *testing.T) {
	t.Parallel()
	p := operatortest.NewPlace(t)
	var answer atomic.Value // http.HandlerFunc
	var accepted atomic.Int32
	server := httptest.NewServer(
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer.Load().(http.HandlerFunc)(w, r) }))
	t.Cleanup(server.Close)
	says := func(f http.HandlerFunc) { answer.Store(f) }
	says(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	p.Create(scheduletest.Hook(server.URL + scheduletest.HookPath))
	operatortest.StartOperator(p, operatortest.Spy{})
	p.Create(scheduletest.NewSchedule("nightly", func(e *v1alpha1.RedisExperimentSchedule) {
		scheduletest.Notifies(e)
		e.Spec.Suspend = true // the test says how runs have ended
	}))
	is := func(status metav1.ConditionStatus, reason, message string) {
		t.Helper()
		var c *metav1.Condition
		p.Until(message, 20*time.Second, func() bool {
			c = meta.FindStatusCondition(scheduletest.Schedule(p, "nightly").Status.Conditions, v1alpha1.ConditionNotified)
			return c != nil && c.Status == status && c.Reason == reason && strings.Contains(c.Message, message)
		}, func() string {
			return operatortest.Where(scheduletest.Schedule(p, "nightly").Status.Conditions) + "; " + c.String()
		})
		if strings.Contains(c.Message, "s3cret") || strings.Contains(c.Message, "127.0.0.1") {
			t.Errorf("the URL is shown: %s", c.Message)
		}
	}
	again := func(template string) {
		t.Helper()
		p.MustChange(operatortest.Change(p, scheduletest.Schedule(p, "nightly"), func(e *v1alpha1.RedisExperimentSchedule) {
			e.Spec.Notify.Template = template
		}))
	}
	is(metav1.ConditionUnknown, v1alpha1.ReasonNothingToNotify, "no run has ended yet")
	of := &history.History{Version: history.Version}
	hasRun(p, of, "nightly", v1alpha1.VerdictPass)
	is(metav1.ConditionFalse, v1alpha1.ReasonNotificationFailed,
		"attempt 1 of 18 to notify of run nightly-1: the server answers 500 Internal Server Error")
	says(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		<-r.Context().Done()
	})
	again("hangs")
	is(metav1.ConditionFalse, v1alpha1.ReasonNotificationFailed, "no answer within 10s")
	says(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusPermanentRedirect)
	})
	again("redirects")
	is(metav1.ConditionFalse, v1alpha1.ReasonNotificationFailed,
		"the server redirects to another address, which is not followed")
	says(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if string(text) == "redirects" { // another attempt, which began before the template changed
			http.Error(w, "too late", http.StatusInternalServerError)
			return
		}
		if err != nil || !strings.HasPrefix(string(text), "accepted: ") ||
			r.Header.Get("Content-Type") != "text/plain; charset=utf-8" || r.URL.Path != scheduletest.HookPath {
			t.Errorf("%s got %q, %v: %v", r.URL, text, err, r.Header)
		}
		accepted.Add(1)
	})
	again("accepted: {{.Verdict}}")
	is(metav1.ConditionTrue, v1alpha1.ReasonNotified, "notified of run nightly-1")
	hasRun(p, of, "nightly", v1alpha1.VerdictPass)
	hasRun(p, of, "nightly", v1alpha1.VerdictFail)
	is(metav1.ConditionTrue, v1alpha1.ReasonNotified, "notified of run nightly-3")
	if n := accepted.Load(); n != 2 {
		t.Errorf("%d notifications were accepted, want those of the first run and of the third", n)
	}
}

// hasRun makes another run a part of the history of a schedule, and waits until its status shows it.
func hasRun(p *operatortest.Place, of *history.History, schedule string, verdict v1alpha1.Verdict) {
	p.T.Helper()
	e, name := scheduletest.Schedule(p, schedule), fmt.Sprintf("%s-%d", schedule, len(of.Runs)+1)
	now := time.Now()
	of.Add(history.Ended{
		Run: history.Run{
			Name:      name,
			Scheduled: now,
			Start:     now,
			End:       now,
			Template:  experiment.HashOf(&e.Spec.Template.Spec),
			Verdict:   verdict,
		},
	})
	data, err := of.Encode("", nil)
	p.MustChange(err)
	stored := children.History(e, data)
	if p.Read(children.History(e, nil)) {
		err = p.Client.Update(p.T.Context(), stored)
	} else {
		err = p.Client.Create(p.T.Context(), stored)
	}
	p.MustChange(err)
	// which wakes the operator
	p.MustChange(operatortest.Change(p, scheduletest.Schedule(p, schedule), func(e *v1alpha1.RedisExperimentSchedule) {
		e.Annotations = map[string]string{"test": name}
	}))
	p.Until(name+" is shown", 20*time.Second, func() bool {
		of := scheduletest.Schedule(p, schedule).Status
		return len(of.History) > 0 && of.History[len(of.History)-1].Name == name
	}, func() string { return operatortest.Where(scheduletest.Schedule(p, schedule).Status.Conditions) })
}

// notifyInVain has schedules that notify servers which send the URL back, are none, or redirect, and one whose Secret
// holds no URL.
func notifyInVain(p *operatortest.Place, _ []stage.Kind) {
	for name, answer := range map[string]http.HandlerFunc{
		"echo": func(w http.ResponseWriter, r *http.Request) {
			user, password, _ := r.BasicAuth()
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, "who is %s? %s %s %s", user, password, r.URL, r.Header.Get("Authorization"))
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+r.Host+r.URL.Path+"/%zz", http.StatusFound)
		},
		"none": func(w http.ResponseWriter, r *http.Request) {
			if connection, _, err := http.NewResponseController(w).Hijack(); err == nil {
				fmt.Fprintf(connection, "%s\r\n\r\n", r.URL)
				_ = connection.Close()
			}
		},
		"no-url": nil,
	} {
		url := stage.Planted + "-url"
		if answer != nil {
			server := httptest.NewServer(answer)
			p.T.Cleanup(server.Close)
			url = fmt.Sprintf("http://%[1]s-user:%[1]s-password@%[2]s/services/%[1]s-path?token=%[1]s-token", stage.Planted,
				strings.TrimPrefix(server.URL, "http://"))
		}
		plant(p, name, map[string]string{"url": url})
		p.Create(scheduletest.NewSchedule(name, func(e *v1alpha1.RedisExperimentSchedule) {
			scheduletest.Notifies(e)
			e.Spec.Notify.URLSecretRef.Name, e.Spec.Suspend = name, true
		}))
		if answer != nil {
			hasRun(p, &history.History{Version: history.Version}, name, v1alpha1.VerdictFail)
		}
		var c *metav1.Condition
		p.Until(name+" has failed", time.Minute, func() bool {
			c = meta.FindStatusCondition(scheduletest.Schedule(p, name).Status.Conditions, v1alpha1.ConditionNotified)
			return c != nil && c.Status == metav1.ConditionFalse
		}, func() string { return c.String() })
		p.T.Logf("%s: %s", name, c.Message)
	}
}

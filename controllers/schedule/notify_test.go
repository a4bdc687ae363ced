package schedule_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/scheduletest"
)

// receiver stands in for a chat: it takes notifications.
type receiver struct {
	url    string
	answer atomic.Value // func(w http.ResponseWriter, r *http.Request)

	mu   sync.Mutex
	got  []string    // the texts that it has accepted
	at   []time.Time // of all requests
	keys []string    // of those it has accepted
}

func startReceiver(w *operatortest.World) *receiver {
	w.T.Helper()
	r := &receiver{url: "http://10.0.0.7:80" + scheduletest.HookPath}
	r.accepts()
	w.Serve("10.0.0.7:80", func(w http.ResponseWriter, request *http.Request) {
		r.mu.Lock()
		r.at = append(r.at, time.Now())
		r.mu.Unlock()
		r.answer.Load().(func(http.ResponseWriter, *http.Request))(w, request)
	})
	return r
}

func (r *receiver) accepts() {
	r.answer.Store(func(_ http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		var of struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(body, &of); err != nil || request.URL.Path != scheduletest.HookPath {
			of.Text = fmt.Sprintf("%s %s: %v", request.URL.Path, body, err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got, r.keys = append(r.got, of.Text), append(r.keys, request.Header.Get("Idempotency-Key"))
	})
}

func (r *receiver) refuses(code int) {
	r.answer.Store(func(w http.ResponseWriter, request *http.Request) {
		w.WriteHeader(code)
		fmt.Fprintf(w, "no service at %s", request.URL)
	})
}

func (r *receiver) hangs() {
	r.answer.Store(func(_ http.ResponseWriter, request *http.Request) {
		_, _ = io.ReadAll(request.Body)
		<-request.Context().Done()
	})
}

// texts are the first lines of what was accepted.
func (r *receiver) texts() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []string
	for _, text := range r.got {
		line, _, _ := strings.Cut(text, "\n")
		lines = append(lines, line)
	}
	return lines
}

func (r *receiver) requests() []time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.at)
}

// notifiedIs waits for the condition Notified.
func notifiedIs(n *scheduletest.Nights,
	status metav1.ConditionStatus, reason, message string, within time.Duration,
) *v1alpha1.RedisExperimentSchedule {
	n.T.Helper()
	var e *v1alpha1.RedisExperimentSchedule
	var c *metav1.Condition
	n.Until(fmt.Sprintf("Notified is %s, %s with %q", status, reason, message), within, func() bool {
		e = scheduletest.Schedule(n.World.Place, "nightly")
		c = meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionNotified)
		return c != nil && c.Status == status && c.Reason == reason && strings.Contains(c.Message, message)
	}, func() string { return fmt.Sprintf("%+v", c) })
	return e
}

// checkNoSecret fails if something that others can read holds a part of the URL.
func checkNoSecret(n *scheduletest.Nights) {
	n.T.Helper()
	shown := fmt.Sprintf("%+v", scheduletest.Schedule(n.World.Place, "nightly").Status)
	for _, reason := range []string{v1alpha1.ReasonNotificationFailed, v1alpha1.ReasonNotified} {
		shown += fmt.Sprint(eventsOf(n.World.Place, reason))
	}
	for _, secret := range []string{"s3cret", "T0KEN", "10.0.0.7"} {
		if strings.Contains(shown, secret) {
			n.T.Errorf("%q is shown: %s", secret, shown)
		}
	}
}

// A schedule whose receiver the operator may not send to says so at once, with the flag and without the host, and goes
// on.
func TestNotificationToNoNamedHost(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		chat := startReceiver(n.World)
		n.Create(scheduletest.Hook("http://10.0.0.8:80" + scheduletest.HookPath))
		n.Begin(scheduletest.Notifies)
		notifiedIs(n, metav1.ConditionFalse, v1alpha1.ReasonInvalidSpec,
			"spec.notify.urlSecretRef: the operator may not send requests to this host: it is not among its --notify-hosts",
			time.Minute)
		scheduletest.RunsHaveEnded(n.World.Place, "nightly", 1, scheduletest.LongAfter)
		if got := chat.requests(); len(got) > 0 {
			n.T.Errorf("requests at %v", got)
		}
		if shown := fmt.Sprintf("%+v", scheduletest.Schedule(n.World.Place, "nightly").Status); strings.Contains(shown,
			"10.0.0.8") {
			n.T.Errorf("the host is shown: %s", shown)
		}
	})
}

// A schedule notifies of its first run, of what has regressed and recovered, and of another verdict; of each once, and
// of nothing else.
func TestScheduleNotifies(t *testing.T) {
	t.Parallel()
	scheduletest.InNights(t, func(n *scheduletest.Nights) {
		t, chat := n.T, startReceiver(n.World)
		n.Takes = scheduletest.Slower(2*time.Millisecond, scheduletest.Night(4), scheduletest.Night(6))
		n.Create(scheduletest.Hook(chat.url))
		n.Begin(func(e *v1alpha1.RedisExperimentSchedule) {
			scheduletest.Notifies(e)
			e.Spec.Template.Spec.Objectives = &v1alpha1.ExperimentObjectives{NoRegression: true}
		})
		notifiedIs(n, metav1.ConditionUnknown, v1alpha1.ReasonNothingToNotify, "no run has ended yet", time.Minute)
		if got := chat.requests(); len(got) > 0 {
			t.Errorf("requests at %v before the first run", got)
		}
		scheduletest.RunsHaveEnded(n.World.Place, "nightly", 9, scheduletest.LongAfter)
		time.Sleep(time.Hour)
		of := func(i int) string { return scheduletest.NameOf("nightly", scheduletest.Night(i)) }
		want := []string{
			"test/nightly: the verdict of run " + of(1) +
				" is Pass. This is the first notification; the next one follows when that changes.",
			"test/nightly has regressed: the verdict of run " + of(4) + " is Fail, after Pass.",
			"test/nightly: the verdict of run " + of(5) + " is Pass, after Fail.",
			"test/nightly has recovered: the verdict of run " + of(7) + " is Pass.",
		}
		if got := chat.texts(); !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if !strings.Contains(chat.got[1], "latencyP99 ") ||
			!strings.HasSuffix(chat.got[1], "\nkubectl -n test describe rexp "+of(4)) {
			t.Errorf("%s", chat.got[1])
		}
		e := notifiedIs(n, metav1.ConditionTrue, v1alpha1.ReasonNotified, "", time.Minute)
		if got := e.Status.Notification; got.Run != of(7) || got.Verdict != v1alpha1.VerdictPass || got.Regressed ||
			got.Attempt != nil || got.Time == nil {
			t.Errorf("%+v", got)
		}
		if events := eventsOf(n.World.Place, v1alpha1.ReasonNotified)["nightly"]; len(events) != 4 {
			t.Errorf("events %q", events)
		}
		checkNoSecret(n)
	})
}

// A server that refuses or hangs is asked again with growing waits, 18 times, and delays no run. A condition and events
// say so. What it takes in the end arrives once.
func TestNotificationIsRetried(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fails func(*receiver)
		want  string
	}{
		"refuses": {func(r *receiver) {
			r.refuses(
				http.StatusNotFound)
		}, "the server answers 404 Not Found: no service at (redacted)"},
		"hangs": {(*receiver).hangs, "no answer within 10s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheduletest.InNights(t, func(n *scheduletest.Nights) {
				t, chat := n.T, startReceiver(n.World)
				c.fails(chat)
				n.Create(scheduletest.Hook(chat.url))
				n.Begin(scheduletest.Notifies)
				first := scheduletest.NameOf("nightly", scheduletest.Night(1))
				notifiedIs(n, metav1.ConditionFalse, v1alpha1.ReasonNotificationFailed,
					"spec.notify: attempt 1 of 18 to notify of run "+first+": "+c.want+"; the next one is at 2000-01-01T03:",
					scheduletest.LongAfter)
				e := notifiedIs(n, metav1.ConditionFalse, v1alpha1.ReasonNotificationFailed, "attempt 18 of 18", 4*time.Hour)
				if got := e.Status.Notification; got.Run != "" || got.Attempt.Count != 18 || got.Attempt.Run != first {
					t.Errorf("%+v", got)
				}
				time.Sleep(12 * time.Hour)
				at := chat.requests()
				if len(at) != 18 {
					t.Fatalf("%d requests, want 18", len(at))
				}
				for i := 1; i < len(at); i++ {
					if wait := at[i].Sub(at[i-1]); wait < 9*time.Second || wait > 11*time.Minute ||
						i < 6 && wait < at[i-1].Sub(at[max(0, i-2)]) {
						t.Errorf("request %d came %s after the one before", i, wait)
					}
				}
				if events := eventsOf(n.World.Place, v1alpha1.ReasonNotificationFailed)["nightly"]; len(events) != 2 {
					t.Errorf("events %q", events)
				}
				checkNoSecret(n)
				chat.accepts()
				// as nothing was notified of, the second run is
				scheduletest.RunsHaveEnded(n.World.Place, "nightly", 2, scheduletest.LongAfter)
				e = notifiedIs(n, metav1.ConditionTrue, v1alpha1.ReasonNotified,
					"notified of run "+scheduletest.NameOf("nightly", scheduletest.Night(2)),
					time.Minute)
				if got := chat.texts(); len(got) != 1 || e.Status.Skipped != 0 || e.Status.Notification.Attempt != nil {
					t.Errorf("%q, %+v", got, e.Status)
				}
				for i, run := range e.Status.History {
					if late := run.StartTime.Sub(scheduletest.Night(i + 1)); late > time.Minute {
						t.Errorf("run %d began %s late", i+1, late)
					}
				}
			})
		})
	}
}

// What was accepted is not sent again because it could not be stored at once; an operator that dies in between sends it
// once more.
func TestNotificationIsStoredLate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		crash bool
		want  int
	}{"the API server refuses": {false, 1}, "the operator dies": {true, 2}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheduletest.InNights(t, func(n *scheduletest.Nights) {
				t, chat := n.T, startReceiver(n.World)
				n.Create(scheduletest.Hook(chat.url))
				var refused atomic.Int32
				operatortest.KeepRunning(n.Place, func(self func() *operatortest.Operator) operatortest.Spy {
					return operatortest.Spy{Before: func(w operatortest.Write) error {
						e, is := w.Object.(*v1alpha1.RedisExperimentSchedule)
						if !is || w.Verb != "patch-status" || e.Status.Notification == nil || e.Status.Notification.Run == "" ||
							refused.Load() >= 8 {
							return nil
						}
						if c.crash {
							refused.Store(8)
							self().Crash()
							return operatortest.ErrDead
						}
						refused.Add(1)
						return apierrors.NewInternalError(fmt.Errorf("etcd is busy"))
					}}
				})
				n.Create(scheduletest.NewSchedule("nightly", scheduletest.Notifies))
				notifiedIs(n, metav1.ConditionTrue, v1alpha1.ReasonNotified, "", scheduletest.LongAfter)
				scheduletest.RunsHaveEnded(n.World.Place, "nightly", 3, scheduletest.LongAfter)
				time.Sleep(time.Hour)
				if got := chat.texts(); len(got) != c.want || refused.Load() != 8 {
					t.Errorf("%d notifications, want %d: %q; %d refused", len(got), c.want, got, refused.Load())
				}
				if keys := slices.Compact(slices.Clone(chat.keys)); len(keys) != 1 ||
					!strings.HasSuffix(keys[0], scheduletest.NameOf("nightly", scheduletest.Night(1))) {
					t.Errorf("keys %q", keys)
				}
			})
		})
	}
}

// What keeps notifications from being sent is said before the first run, with the field. Runs take place meanwhile.
// Once it is mended, they are sent.
func TestNotificationThatCannotBeSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		secret *corev1.Secret
		change func(*v1alpha1.RedisExperimentSchedule)
		reason string
		want   string
	}{
		"no Secret": {
			nil, nil, v1alpha1.ReasonSecretNotFound,
			`spec.notify.urlSecretRef: there is no Secret "chat" in namespace test`,
		},
		"no key": {
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "chat"}}, nil, v1alpha1.ReasonSecretNotFound,
			`spec.notify.urlSecretRef: Secret "chat" has no key "url"`,
		},
		"no URL": {
			scheduletest.Hook("s3cretT0KEN"), nil, v1alpha1.ReasonInvalidSpec,
			`spec.notify.urlSecretRef: key "url" of Secret "chat": it is no URL that begins with http:// or https:// and has a host`,
		},
		"template": {
			nil,
			func(e *v1alpha1.RedisExperimentSchedule) { e.Spec.Notify.Template = "a\n{{.Verdicts}}" },
			v1alpha1.ReasonInvalidSpec,
			"spec.notify.template: line 2:2: at <.Verdicts>: can't evaluate field Verdicts",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheduletest.InNights(t, func(n *scheduletest.Nights) {
				t, chat := n.T, startReceiver(n.World)
				if c.secret != nil {
					n.Create(c.secret)
				}
				n.Begin(func(e *v1alpha1.RedisExperimentSchedule) {
					scheduletest.Notifies(e)
					if c.change != nil {
						c.change(e)
					}
				})
				notifiedIs(n, metav1.ConditionFalse, c.reason, c.want, time.Minute)
				checkNoSecret(n)
				e := scheduletest.RunsHaveEnded(n.World.Place, "nightly", 1, scheduletest.LongAfter)
				if e.Status.Verdict != v1alpha1.VerdictPass || len(chat.requests()) > 0 {
					t.Errorf("%+v; requests at %v", e.Status, chat.requests())
				}
				if c.secret == nil {
					n.Create(scheduletest.Hook(chat.url))
				} else {
					n.MustChange(operatortest.Change(n.Place, c.secret, func(s *corev1.Secret) {
						s.Data = scheduletest.Hook(
							chat.url).Data
					}))
				}
				if c.change != nil {
					n.MustChange(operatortest.Change(n.Place, e, func(e *v1alpha1.RedisExperimentSchedule) {
						e.Spec.Notify.Template = ""
					}))
				}
				notifiedIs(n, metav1.ConditionTrue, v1alpha1.ReasonNotified,
					"notified of run "+scheduletest.NameOf("nightly", scheduletest.Night(1)),
					2*time.Minute)
				n.MustChange(operatortest.Change(n.Place, e, func(e *v1alpha1.RedisExperimentSchedule) { e.Spec.Notify = nil }))
				n.Until("nothing is left of it", time.Minute, func() bool {
					e = scheduletest.Schedule(n.World.Place, "nightly")
					return meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ConditionNotified) == nil &&
						e.Status.Notification == nil
				}, func() string { return fmt.Sprintf("%+v", e.Status) })
			})
		})
	}
}

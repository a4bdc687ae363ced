package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(d time.Duration) time.Time { return epoch.Add(d) }

// ready is a test whose pods wait for the start.
func ready(change func(*LoadTest)) LoadTest {
	o := LoadTest{
		Noted: true,
		LoadPods: LoadPods{
			PendingSince: epoch,
			StartWithin:  2 * time.Minute,
			Children:     true,
			PodsWanted:   2,
			PodsReady:    2,
			PodsLive:     2,
			LostPolicy:   v1alpha1.LostPodFail,
		},
		Course: Course{
			RampUp: 3 * time.Second,
			WarmUp: 5 * time.Second,
			Length: 68 * time.Second,
		},
	}
	if change != nil {
		change(&o)
	}
	return o
}

// running is a test that began at the epoch.
func runningTest(change func(*LoadTest)) LoadTest {
	return ready(func(o *LoadTest) {
		o.StartedAt, o.StartReceived, o.StartedAny = epoch, true, true
		if change != nil {
			change(o)
		}
	})
}

func TestNextForLoadTest(t *testing.T) {
	ttl := time.Minute
	missing := &problem.Problem{Reason: v1alpha1.ReasonSecretNotFound, Message: "spec.target.auth: gone"}
	for _, tc := range []struct {
		name    string
		seen    LoadTest
		now     time.Duration
		action  LoadTestAction
		reason  string
		until   time.Duration // 0 = none
		message string
	}{
		{"nothing made yet", ready(func(o *LoadTest) {
			o.Children = false
			o.PodsReady = 0
		}), 0, LoadTestPrepare, v1alpha1.ReasonPreparing, 0, ""},
		{
			"pods come up",
			ready(func(o *LoadTest) {
				o.PodsReady = 1
				o.PodsExplain = "load-1 is starting"
				o.PodsAnswer = true
			}),
			5 * time.Second,
			LoadTestWait,
			v1alpha1.ReasonPreparing,
			6 * time.Second,
			"1 of 2 load pods are ready: load-1 is starting",
		},
		{
			"no pod has an address yet",
			ready(func(o *LoadTest) { o.PodsReady = 0 }),
			time.Second,
			LoadTestWait,
			v1alpha1.ReasonPreparing,
			2 * time.Second,
			"",
		},
		{"no pod gets an address", ready(func(o *LoadTest) {
			o.PodsReady = 0
			o.StartWithin = time.Hour
		}), 30 * time.Second, LoadTestWait, v1alpha1.ReasonPreparing, 45 * time.Second, ""},
		{"no pod gets an address for long", ready(func(o *LoadTest) {
			o.PodsReady = 0
			o.StartWithin = time.Hour
		}), 30 * time.Minute, LoadTestWait, v1alpha1.ReasonPreparing, 31 * time.Minute, ""},
		{
			"the last poll before the deadline is at the deadline",
			ready(func(o *LoadTest) { o.PodsReady = 0 }),
			2*time.Minute - 300*time.Millisecond,
			LoadTestWait,
			v1alpha1.ReasonPreparing,
			2 * time.Minute,
			"",
		},
		{"pods never come", ready(func(o *LoadTest) {
			o.PodsReady = 0
			o.PodsExplain = "exceeded quota"
		}), 2 * time.Minute, LoadTestFail, v1alpha1.ReasonStartDeadline, 0, "exceeded quota"},
		{"all ready", ready(nil), time.Second, LoadTestStart, v1alpha1.ReasonStarting, 0, ""},
		{
			"all ready at the deadline still starts", ready(nil), 3 * time.Minute, LoadTestStart, v1alpha1.ReasonStarting, 0,
			"",
		},
		{
			"a missing secret may still come",
			ready(func(o *LoadTest) { o.Problem = missing }),
			time.Second,
			LoadTestWait,
			v1alpha1.ReasonSecretNotFound,
			2 * time.Second,
			missing.Message,
		},
		{
			"it is looked for ever more seldom",
			ready(func(o *LoadTest) { o.Problem = missing }),
			time.Minute,
			LoadTestWait,
			v1alpha1.ReasonSecretNotFound,
			66 * time.Second,
			missing.Message,
		},
		{
			"the last look for it is at the deadline",
			ready(func(o *LoadTest) { o.Problem = missing }),
			2*time.Minute - time.Second,
			LoadTestWait,
			v1alpha1.ReasonSecretNotFound,
			2 * time.Minute,
			"",
		},
		{
			"it did not come",
			ready(func(o *LoadTest) { o.Problem = missing }),
			2 * time.Minute,
			LoadTestFail,
			v1alpha1.ReasonSecretNotFound,
			0,
			"spec.pods.startDeadline: after 2m0s: " + missing.Message,
		},
		{
			"Redis is not ready",
			ready(func(o *LoadTest) {
				o.PodsReady = 0
				o.PodsAwait = "TargetUnreachable"
				o.PodsExplain = "load-0 redis:6379 is not ready: LOADING"
				o.PodsAnswer = true
			}),
			time.Second,
			LoadTestWait,
			"TargetUnreachable",
			2 * time.Second,
			"0 of 2 load pods are ready: load-0 redis:6379 is not ready: LOADING",
		},
		{"Redis never is", ready(func(o *LoadTest) {
			o.PodsReady = 0
			o.PodsAwait = "TargetUnreachable"
			o.PodsExplain = "LOADING"
		}), 2 * time.Minute, LoadTestFail, "TargetUnreachable", 0, "after 2m0s only 0 of 2 load pods are ready: LOADING"},
		{"the children can never be made", ready(func(o *LoadTest) {
			o.Children = false
			o.PodsExplain = "exceeded quota: jobs"
		}), 2 * time.Minute, LoadTestFail, v1alpha1.ReasonStartDeadline, 0, "exceeded quota: jobs"},
		{"a spec that cannot work fails at once", ready(func(o *LoadTest) {
			o.Problem = &problem.Problem{
				Reason:  v1alpha1.ReasonInvalidSpec,
				Lasting: true,
			}
		}), 0, LoadTestFail, v1alpha1.ReasonInvalidSpec, 0, ""},
		{"the agent reports the reason", ready(func(o *LoadTest) {
			o.PodsReady, o.AgentProblem = 0, &problem.Problem{Reason: "AuthenticationFailed", Message: "at redis:6379"}
		}), 0, LoadTestFail, "AuthenticationFailed", 0, "redis:6379"},
		{
			"abort before the start",
			ready(func(o *LoadTest) { o.Abort = true }),
			0,
			LoadTestFinish,
			v1alpha1.ReasonAborted,
			0,
			"",
		},
		{"a queue holds the Job", ready(func(o *LoadTest) {
			o.PodsReady = 0
			o.JobSuspended = true
		}), time.Hour, LoadTestWait, v1alpha1.ReasonJobSuspended, 0, "spec.suspend"},
		{"a queue holds a Job for another generation", ready(func(o *LoadTest) {
			o.PodsReady = 0
			o.JobSuspended = true
			o.Children = false
		}), 0, LoadTestPrepare, v1alpha1.ReasonPreparing, 0, ""},
		{"abort while a queue holds the Job", ready(func(o *LoadTest) {
			o.PodsReady = 0
			o.JobSuspended = true
			o.Abort = true
		}), time.Hour, LoadTestFinish, v1alpha1.ReasonAborted, 0, ""},
		{"suspend while a queue holds the Job", ready(func(o *LoadTest) {
			o.PodsReady = 0
			o.JobSuspended = true
			o.Suspend = true
		}), time.Hour, LoadTestSuspend, v1alpha1.ReasonSuspended, 0, ""},
		{"suspend", ready(func(o *LoadTest) { o.Suspend = true }), 0, LoadTestSuspend, v1alpha1.ReasonSuspended, 0, ""},
		{"suspended", ready(func(o *LoadTest) {
			o.Suspend = true
			o.Suspended = true
		}), 0, LoadTestWait, v1alpha1.ReasonSuspended, 0, ""},

		{
			"the start is in the future", runningTest(nil), -400 * time.Millisecond, LoadTestWait, v1alpha1.ReasonStarting,
			time.Nanosecond, "",
		},
		{
			"a pod missed the start instant",
			runningTest(func(o *LoadTest) { o.StartReceived = false }),
			100 * time.Millisecond,
			LoadTestResend,
			v1alpha1.ReasonStarting,
			0,
			"",
		},
		{"no pod received the start and it has passed", runningTest(func(o *LoadTest) {
			o.StartReceived = false
			o.StartedAny = false
		}), time.Second, LoadTestStart, v1alpha1.ReasonStarting, 0, ""},
		{"no pod received the start and it is in the future", runningTest(func(o *LoadTest) {
			o.StartReceived = false
			o.StartedAny = false
		}), -time.Second, LoadTestResend, v1alpha1.ReasonStarting, 0, ""},
		{"ramp-up", runningTest(nil), 2 * time.Second, LoadTestWait, v1alpha1.ReasonRampingUp, 3 * time.Second, ""},
		{"warm-up", runningTest(nil), 4 * time.Second, LoadTestWait, v1alpha1.ReasonWarmingUp, 6 * time.Second, ""},
		{"measured time", runningTest(nil), 8 * time.Second, LoadTestWait, v1alpha1.ReasonRunning, 10 * time.Second, ""},
		{"a search decides a rate", runningTest(func(o *LoadTest) {
			o.Search = &Search{
				Due:     true,
				Message: "climbing; 100 meets the objectives",
			}
		}), 9 * time.Second, LoadTestStep, v1alpha1.ReasonSearching, 0, "climbing"},
		{"a trial is under way", runningTest(func(o *LoadTest) {
			o.Search = &Search{
				Until: at(9300 * time.Millisecond),
			}
		}), 9 * time.Second, LoadTestWait, v1alpha1.ReasonSearching, 9300 * time.Millisecond, ""},
		{"a trial takes long", runningTest(func(o *LoadTest) {
			o.Search = &Search{
				Until: at(time.Minute),
			}
		}), 9 * time.Second, LoadTestWait, v1alpha1.ReasonSearching, 11 * time.Second, ""},
		{"a trial is not yet in the record", runningTest(func(o *LoadTest) {
			o.Search = &Search{
				Until: at(8 * time.Second),
			}
		}), 9 * time.Second, LoadTestWait, v1alpha1.ReasonSearching, 9200 * time.Millisecond, ""},
		{"a search in its warm-up", runningTest(func(o *LoadTest) {
			o.Search = &Search{
				Until: at(20 * time.Second),
			}
		}), 4 * time.Second, LoadTestWait, v1alpha1.ReasonWarmingUp, 6 * time.Second, ""},
		{"a search is aborted", runningTest(func(o *LoadTest) {
			o.Search = &Search{Due: true}
			o.Abort = true
		}), 9 * time.Second, LoadTestStop, v1alpha1.ReasonAborted, 0, ""},
		{"a search is aborted, the pods are stopped", runningTest(func(o *LoadTest) {
			o.Search = &Search{Due: true}
			o.Abort = true
			o.Stopped = true
		}), 9 * time.Second, LoadTestWait, v1alpha1.ReasonRunning, 11 * time.Second, ""},
		{
			"abort",
			runningTest(func(o *LoadTest) { o.Abort = true }),
			9 * time.Second,
			LoadTestStop,
			v1alpha1.ReasonAborted,
			0,
			"",
		},
		{"abort, the pods are stopped", runningTest(func(o *LoadTest) {
			o.Abort = true
			o.Stopped = true
		}), 9 * time.Second, LoadTestWait, v1alpha1.ReasonRunning, 11 * time.Second, ""},
		{"abort, ended", runningTest(func(o *LoadTest) {
			o.Abort = true
			o.Stopped = true
			o.RecordEnded = true
		}), 9 * time.Second, LoadTestFinish, v1alpha1.ReasonAborted, 0, ""},
		{"a lost pod fails the test", runningTest(func(o *LoadTest) {
			o.PodsLost = []string{"index 1: OOMKilled"}
			o.PodsLive = 1
		}), 9 * time.Second, LoadTestFail, v1alpha1.ReasonPodsLost, 0, "OOMKilled"},
		{"a lost pod is put up with", runningTest(func(o *LoadTest) {
			o.LostPolicy, o.PodsLost, o.PodsLive = v1alpha1.LostPodContinue, []string{"index 1"}, 1
		}), 9 * time.Second, LoadTestWait, v1alpha1.ReasonRunning, 11 * time.Second, "1 load pod runs"},
		{"all pods lost", runningTest(func(o *LoadTest) {
			o.LostPolicy, o.PodsLost, o.PodsLive = v1alpha1.LostPodContinue, []string{"index 0", "index 1"}, 0
		}), 9 * time.Second, LoadTestFail, v1alpha1.ReasonPodsLost, 0, ""},
		{
			"one pod reads its ledger back, one still loads",
			runningTest(func(o *LoadTest) { o.Verifying = 1 }),
			69 * time.Second,
			LoadTestWait,
			v1alpha1.ReasonRunning,
			71 * time.Second,
			"",
		},
		{
			"all read their ledgers back",
			runningTest(func(o *LoadTest) {
				o.Verifying = 2
				o.VerifyingSays = "waiting for redis-1"
			}),
			69 * time.Second,
			LoadTestWait,
			v1alpha1.ReasonVerifying,
			71 * time.Second,
			"2 load pods read back what was acknowledged: waiting for redis-1",
		},
		{
			"reading takes its time",
			runningTest(func(o *LoadTest) { o.Verifying = 1 }),
			68*time.Second + 5*time.Minute,
			LoadTestWait,
			v1alpha1.ReasonRunning,
			70*time.Second + 5*time.Minute,
			"",
		},
		{
			"reading never ends",
			runningTest(func(o *LoadTest) { o.Verifying = 2 }),
			69*time.Second + endGrace + verifyGrace,
			LoadTestFail,
			v1alpha1.ReasonPodsLost,
			0,
			"",
		},
		{"what was read must be stored first", runningTest(func(o *LoadTest) {
			o.RecordEnded = true
			o.ResultUnstored = true
		}), 70 * time.Second, LoadTestWait, v1alpha1.ReasonVerifying, 70*time.Second + 100*time.Millisecond, ""},
		{
			"the record has ended",
			runningTest(func(o *LoadTest) { o.RecordEnded = true }),
			70 * time.Second,
			LoadTestFinish,
			v1alpha1.ReasonSucceeded,
			0,
			"",
		},
		{"a fault is not settled", runningTest(func(o *LoadTest) {
			o.RecordEnded, o.RecordEndedAt, o.FaultsUnfinished = true, at(69*time.Second), []string{"kill"}
		}), 70 * time.Second, LoadTestWait, v1alpha1.ReasonWaitingForFaults, 71 * time.Second, "kill"},
		{"a fault never settles", runningTest(func(o *LoadTest) {
			o.RecordEnded, o.RecordEndedAt, o.FaultsUnfinished = true, at(69*time.Second), []string{"kill"}
		}), 69*time.Second + FaultsGrace, LoadTestFinish, v1alpha1.ReasonSucceeded, 0, ""},
		{"every fault has settled when the extension begins", runningTest(func(o *LoadTest) {
			o.Extension = 20 *
				time.Second
		}), 48 * time.Second, LoadTestStop, v1alpha1.ReasonRunning, 0, "every fault"},
		{"a fault that has not settled before the extension", runningTest(func(o *LoadTest) {
			o.Extension = 20 * time.Second
			o.FaultsUnsettled = []string{"kill"}
		}), 47 * time.Second, LoadTestWait, v1alpha1.ReasonRunning, 48 * time.Second, ""},
		{"a fault that has not settled in the extension", runningTest(func(o *LoadTest) {
			o.Extension = 20 * time.Second
			o.FaultsUnsettled = []string{"kill"}
		}), 49 * time.Second, LoadTestWait, v1alpha1.ReasonWaitingForFaults, 51 * time.Second, "kill"},
		{"the extension has ended by request", runningTest(func(o *LoadTest) {
			o.Extension = 20 * time.Second
			o.Stopped = true
		}), 49 * time.Second, LoadTestWait, v1alpha1.ReasonRunning, 51 * time.Second, ""},
		{"abort in the extension", runningTest(func(o *LoadTest) {
			o.Extension = 20 * time.Second
			o.Abort = true
			o.FaultsUnsettled = []string{"kill"}
		}), 49 * time.Second, LoadTestStop, v1alpha1.ReasonAborted, 0, ""},
		{
			"pods that never end", runningTest(nil), 68*time.Second + endGrace + time.Second, LoadTestFail,
			v1alpha1.ReasonPodsLost, 0, "",
		},
		{
			"the operator was down for an hour: the pods are collected first",
			runningTest(func(o *LoadTest) { o.CollectedSince = at(time.Hour) }),
			time.Hour + 30*time.Second,
			LoadTestWait,
			v1alpha1.ReasonRunning,
			time.Hour + 32*time.Second,
			"",
		},
		{
			"a run by number of requests has no such limit",
			runningTest(func(o *LoadTest) { o.Length = 0 }),
			3 * time.Hour,
			LoadTestWait,
			v1alpha1.ReasonRunning,
			3*time.Hour + 2*time.Second,
			"",
		},

		{"not noted", ready(func(o *LoadTest) {
			o.Noted = false
			o.Children = false
		}), 0, LoadTestNote, v1alpha1.ReasonPreparing, 0, ""},
		{
			"the note was removed before the start",
			ready(func(o *LoadTest) { o.Noted = false }),
			0,
			LoadTestNote,
			v1alpha1.ReasonPreparing,
			0,
			"",
		},
		{"a copy of one that had begun", ready(func(o *LoadTest) {
			o.Noted = false
			o.Restored = "a copy"
		}), 0, LoadTestFinish, v1alpha1.ReasonRestored, 0, "a copy"},
		{
			"such a copy, held",
			LoadTest{Restored: "a copy", Suspend: true},
			0,
			LoadTestFinish,
			v1alpha1.ReasonRestored,
			0,
			"a copy",
		},
		{"finished", LoadTest{Finished: true}, 0, LoadTestWait, "", 0, ""},
		{
			"finished with a TTL",
			LoadTest{Finished: true, CompletedAt: epoch, TTL: &ttl},
			time.Second,
			LoadTestWait,
			"",
			time.Minute,
			"",
		},
		{"expired", LoadTest{Finished: true, CompletedAt: epoch, TTL: &ttl}, time.Minute, LoadTestExpire, "", 0, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := NextForLoadTest(tc.seen, at(tc.now))
			if d.Action != tc.action || d.Reason != tc.reason {
				t.Errorf("decided %s (%s), want %s (%s): %s", d.Action, d.Reason, tc.action, tc.reason, d.Message)
			}
			if tc.until == time.Nanosecond {
				tc.until = 0
				if !d.Until.Equal(epoch) {
					t.Errorf("until %s, want the start", d.Until)
				}
			} else if want := at(tc.until); tc.until != 0 && !d.Until.Equal(want) {
				t.Errorf("until %s, want %s", d.Until, want)
			} else if tc.until == 0 && !d.Until.IsZero() {
				t.Errorf("until %s, want none", d.Until)
			}
			if !strings.Contains(d.Message, tc.message) {
				t.Errorf("got message %q, want one that contains %q", d.Message, tc.message)
			}
		})
	}
}

package agent_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/agenttest"
)

func TestAgentLifecycle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serve(t, &agenttest.Runner{Intervals: 40, Preparing: 500 * time.Millisecond}, nil)
		if s := w.status(); s.State != agent.Preparing || s.Message != "prefilled 50 %" || s.Run != "run" ||
			s.Instance == "" {
			t.Errorf("while preparing: %+v", s)
		}
		w.want("POST", agent.PathStart, `{"at":99999999999999}`, 409)
		w.want("POST", agent.PathRelease, "", 409)
		at := w.start()

		// A pull waits until the first interval is available.
		begin := time.Now()
		first, header := w.pull("after=0&wait=5s")
		if len(first) != 1 || time.Since(begin) != 30*time.Millisecond+step ||
			header.Get(agent.HeaderState) != string(agent.Running) {
			t.Errorf("first pull: %d intervals after %v, headers %v", len(first), time.Since(begin), header)
		}
		s := w.until(agent.Finished)
		if s.StartAt != at || s.StartedAt != at || s.LastSeq != 40 || s.Lost != 0 {
			t.Errorf("finished: %+v, start was %d", s, at)
		}
		if s.Server == nil || s.Server.Version != "7.0.15" {
			t.Errorf("server: %+v", s.Server)
		}
		all, _ := w.pull("after=0")
		if some, header := w.pull("after=0&max=1"); len(some) != 1 ||
			header.Get(agent.HeaderLastSeq) != strconv.Itoa(len(all)) {
			t.Errorf("%d intervals of %d with max=1, the last is %s", len(some), len(all), header.Get(agent.HeaderLastSeq))
		}
		if len(all) != 40 {
			t.Fatalf("%d intervals", len(all))
		}
		for i := range all {
			if diff := cmp.Diff(agenttest.Interval(0, int64(i), 2, step), all[i]); diff != "" {
				t.Errorf("interval %d (-want +got)\n%s", i, diff)
			}
		}
		if rest, _ := w.pull("after=30&ack=20"); len(rest) != 10 || rest[0].Index != 30 {
			t.Errorf("after 30: %d intervals", len(rest))
		}
		if rest, _ := w.pull("after=0"); len(rest) != 20 || rest[0].Index != 20 {
			t.Errorf("after the acknowledgement of 20: %d intervals", len(rest))
		}
		w.want("POST", agent.PathRelease, "", 204)
		if err := w.served(); err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

func TestStartIsAcceptedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serve(t, &agenttest.Runner{Intervals: 1}, nil)
		time.Sleep(time.Second) // the pod's clock is past zero, which is no valid start time
		s := w.until(agent.Ready)
		later := s.Now + int64(time.Hour)
		w.want("POST", agent.PathStart, fmt.Sprintf(`{"at":%d,"instance":"another"}`, later), 409)
		w.want("POST", agent.PathStart, fmt.Sprintf(`{"at":%d}`, s.Now), 409) // has passed
		w.want("POST", agent.PathStart, fmt.Sprintf(`{"at":%d,"instance":%q}`, later, s.Instance), 204)
		w.want("POST", agent.PathStart, fmt.Sprintf(`{"at":%d}`, later), 204)
		w.want("POST", agent.PathStart, fmt.Sprintf(`{"at":%d}`, later+1), 409)
		if s := w.status(); s.State != agent.Running || s.StartAt != later || s.StartedAt != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestBadRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serve(t, &agenttest.Runner{}, nil)
		s := w.until(agent.Ready)
		for _, c := range []struct {
			method, path, body string
			code               int
		}{
			{"GET", "/v1/intervals?after=x", "", 400},
			{"GET", "/v1/intervals?after=-1", "", 400},
			{"GET", "/v1/intervals?wait=soon", "", 400},
			{"GET", "/v1/intervals?wait=-1s", "", 400},
			{"GET", "/v1/intervals?max=0", "", 400},
			{"GET", "/v1/intervals?after=1&ack=2", "", 400},
			{"GET", "/v1/intervals?after=1", "", 409},
			{"GET", "/v1/intervals?instance=another", "", 409},
			{"GET", "/v1/intervals?instance=" + s.Instance, "", 200},
			{"POST", "/v1/start", "{", 400},
			{"POST", "/v1/start", `{"at":0}`, 400},
			{"POST", "/v1/start", `{"at":1,"more":1}`, 400},
			{"POST", "/v1/start", `{"instance":"` + strings.Repeat("x", 8<<10) + `","at":1}`, 400},
			{"POST", "/v1/status", "", 405},
			{"GET", "/v1/nothing", "", 404},
		} {
			w.want(c.method, c.path, c.body, c.code)
		}
	})
}

func TestRequestsNeedTheToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serve(t, &agenttest.Runner{}, nil)
		for _, header := range []string{
			"", "Bearer", "Bearer ", "Bearer x", w.token, "Basic " + w.token,
			"bearer " + w.token + "x", "Bearer " + w.token[:10],
		} {
			for _, path := range []string{agent.PathStatus, agent.PathStop, "/nothing"} {
				request, err := http.NewRequest("POST", w.base+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				if header != "" {
					request.Header.Set("Authorization", header)
				}
				response, err := w.client.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(response.Body)
				response.Body.Close()
				if response.StatusCode != 401 || len(body) != 0 || err != nil {
					t.Errorf("%q at %s: %d %q %v", header, path, response.StatusCode, body, err)
				}
			}
		}
		if s := w.until(agent.Ready); s.State.Ended() {
			t.Errorf("a stop without the token was accepted: %+v", s)
		}
	})
}

func TestTLS13Only(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serve(t, &agenttest.Runner{}, nil)
		config := w.client.Transport.(*http.Transport).TLSClientConfig.Clone()
		config.MinVersion, config.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
		plain, err := w.network.Dial(t.Context(), "tcp", w.agent.Address)
		if err != nil {
			t.Fatal(err)
		}
		c := tls.Client(plain, config)
		defer c.Close()
		if err := c.Handshake(); err == nil || !strings.Contains(err.Error(), "protocol version") {
			t.Errorf("TLS 1.2: %v", err)
		}
	})
}

func TestFailuresAreReportedUntilRelease(t *testing.T) {
	refused := &plan.Error{Reason: plan.AuthenticationFailed, Message: "redis:6379 wants a password"}
	for name, c := range map[string]struct {
		runner          *agenttest.Runner
		start           bool
		reason, message string
		intervals       int
	}{
		"prepare": {
			&agenttest.Runner{PrepareErr: fmt.Errorf("prepare: %w", refused)},
			false,
			"AuthenticationFailed",
			refused.Message,
			0,
		},
		"other": {&agenttest.Runner{PrepareErr: errors.New("disk on fire")}, false, "Other", "disk on fire", 0},
		"run": {
			&agenttest.Runner{Intervals: 10, FailAfter: 4, RunErr: refused},
			true,
			"AuthenticationFailed",
			refused.Message,
			4,
		},
		"panic": {
			&agenttest.Runner{Intervals: 10, FailAfter: 3, Panic: "index out of range"},
			true,
			"Other",
			"panic: index out of range",
			3,
		},
		"foreign end": {
			&agenttest.Runner{Intervals: 10, FailAfter: 1, RunErr: context.Canceled},
			true,
			"Other",
			"context canceled",
			1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := serve(t, c.runner, nil)
				if c.start {
					w.start()
				}
				s := w.until(agent.Failed)
				if s.Reason != c.reason || s.Message != c.message {
					t.Errorf("failed as %q %q", s.Reason, s.Message)
				}
				if got, _ := w.pull("after=0"); len(got) != c.intervals {
					t.Errorf("%d intervals, want %d", len(got), c.intervals)
				}
				select {
				case <-w.agent.Done:
					t.Fatal("the agent ended before the release")
				default:
				}
				w.want("POST", agent.PathRelease, "", 204)
				err := w.served()
				if e, ok := errors.AsType[*plan.Error](err); !ok || string(e.Reason) != c.reason {
					t.Errorf("Serve: %v", err)
				}
			})
		})
	}
}

func TestStopKeepsTheRecord(t *testing.T) {
	for _, when := range []agent.State{agent.Preparing, agent.Ready, agent.Running} {
		t.Run(string(when), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				runner := &agenttest.Runner{Intervals: 1e6}
				if when == agent.Preparing {
					runner.Preparing = time.Hour
				}
				w := serve(t, runner, nil)
				if when == agent.Running {
					w.start()
					w.pull("after=0&wait=5s")
				} else {
					w.until(when)
				}
				w.want("POST", agent.PathStop, "", 204)
				s := w.until(agent.Finished)
				got, _ := w.pull("after=0")
				if s.Message != "stopped" || uint64(len(got)) != s.LastSeq || (when == agent.Running) != (len(got) > 0) {
					t.Errorf("%+v, pulled %d", s, len(got))
				}
				w.want("POST", agent.PathStop, "", 204)
				w.want("POST", agent.PathRelease, "", 204)
				if err := w.served(); err != nil {
					t.Errorf("Serve: %v", err)
				}
			})
		})
	}
}

func TestTerminationLeavesTimeToPull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serve(t, &agenttest.Runner{Intervals: 1e6}, func(c *agent.Config) { c.Drain = 2 * time.Second })
		w.start()
		w.pull("after=0&wait=5s")
		terminated := time.Now()
		w.agent.Terminate()
		s := w.until(agent.Failed)
		if got, _ := w.pull("after=0"); s.Reason != agent.ReasonTerminated || uint64(len(got)) != s.LastSeq || len(got) == 0 {
			t.Errorf("%+v, pulled %d", s, len(got))
		}
		err := w.served()
		if e, ok := errors.AsType[*plan.Error](err); !ok || e.Reason != agent.ReasonTerminated ||
			time.Since(terminated) != 2*time.Second {
			t.Errorf("Serve: %v after %v", err, time.Since(terminated))
		}
	})
}

func TestLingerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quick := func(c *agent.Config) { c.Linger = 50 * time.Millisecond }
		finished := serve(t, &agenttest.Runner{Intervals: 1}, quick)
		finished.start()
		if err := finished.served(); !errors.Is(err, agent.ErrNotReleased) {
			t.Errorf("finished: %v", err)
		}
		failed := serve(t, &agenttest.Runner{PrepareErr: &plan.Error{Reason: plan.TLSFailed, Message: "no"}}, quick)
		if e, ok := errors.AsType[*plan.Error](failed.served()); !ok || e.Reason != plan.TLSFailed {
			t.Errorf("failed: %v", failed.agent.Err)
		}
	})
}

func TestRecordBeyondItsLimitIsCountedAsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := agenttest.Interval(0, 0, 2, step)
		limit := 10 * len(record.AppendInterval(nil, &one))
		w := serve(t, &agenttest.Runner{Intervals: 60}, func(c *agent.Config) { c.MaxBuffered = limit })
		w.start()
		s := w.until(agent.Finished)
		got, header := w.pull("after=0")
		if s.Lost == 0 || s.Lost+uint64(len(got)) != 60 || got[len(got)-1].Index != 59 ||
			header.Get(agent.HeaderLost) != fmt.Sprint(s.Lost) {
			t.Errorf("lost %d, kept %d, headers %v", s.Lost, len(got), header)
		}
	})
}

func TestSecretsAreNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serve(t, &agenttest.Runner{}, nil)
		w.until(agent.Ready)
		_, data, header := w.do("GET", agent.PathStatus, "")
		if bytes.Contains(data, []byte(w.token)) || header.Get("Server") != "" {
			t.Errorf("status %s, headers %v", data, header)
		}
	})
}

// The ledger is verified after the load, while the record can be pulled, and the last status contains the result.
func TestAgentVerifiesAfterTheLoad(t *testing.T) {
	for name, c := range map[string]struct {
		plan   *plan.Verify
		result *record.Ledger
		err    error
		want   *record.Ledger
	}{
		"found": {
			&plan.Verify{Share: 0.01},
			&record.Ledger{Acked: 10, Lost: 3},
			nil,
			&record.Ledger{Acked: 10, Lost: 3},
		},
		"unread":    {&plan.Verify{Share: 0.01}, nil, errors.New("no primary"), &record.Ledger{Unread: "no primary"}},
		"not asked": {nil, &record.Ledger{Acked: 10}, nil, nil},
		"nothing":   {&plan.Verify{Share: 0.01}, nil, nil, nil},
		"takes an age": {
			&plan.Verify{Share: 0.01},
			nil,
			context.DeadlineExceeded,
			&record.Ledger{Unread: "reading it back took longer than 50ms"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				found := &record.Guarantees{Lock: &record.Lock{Taken: 7, Overlaps: 1, Overlap: 5}}
				runner := &agenttest.Runner{
					Intervals: 3, Ledger: c.result, VerifyErr: c.err, Verifying: 20 * time.Millisecond, Found: found,
				}
				w := serve(t, runner, func(cfg *agent.Config) {
					cfg.Plan.Verify = c.plan
					if name == "takes an age" {
						runner.Verifying, cfg.VerifyLimit = time.Minute, 50*time.Millisecond
					}
				})
				w.start()
				status := w.until(agent.Finished)
				if diff := cmp.Diff(found, status.Guarantees); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff(c.want, status.Ledger); diff != "" || status.Reason != "" || status.LastSeq != 3 {
					t.Errorf("%+v\n%s", status, diff)
				}
			})
		})
	}
}

// A stop ends the verification; the measurements are kept.
func TestStopWhileVerifying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serve(t, &agenttest.Runner{Intervals: 3, Verifying: time.Minute}, func(cfg *agent.Config) {
			cfg.Plan.Verify = &plan.Verify{Share: 0.01}
		})
		w.start()
		if status := w.until(agent.Verifying); status.Ledger != nil || status.LastSeq != 3 {
			t.Errorf("%+v", status)
		}
		w.want("POST", agent.PathRelease, "", 409)
		if intervals, header := w.pull("after=0"); len(intervals) != 3 ||
			header.Get(agent.HeaderState) != string(agent.Verifying) {
			t.Errorf("%d intervals, state %s", len(intervals), header.Get(agent.HeaderState))
		}
		w.want("POST", agent.PathStop, "", 204)
		if status := w.until(agent.Finished); status.Ledger == nil || !strings.Contains(status.Ledger.Unread, "stopped") ||
			status.Message == "" {
			t.Errorf("%+v", status)
		}
	})
}

// The end of a load is told to it, after which its ledger is read back; another one changes nothing, and a stop ends
// that.
func TestEndIsFollowedByTheVerification(t *testing.T) {
	for name, stops := range map[string]bool{"ended": false, "ended and stopped": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := serve(t, &agenttest.Runner{Intervals: 1e6, Verifying: 5 * time.Second, Ledger: &record.Ledger{Acked: 7}},
					func(cfg *agent.Config) { cfg.Plan.Verify = &plan.Verify{Share: 0.01} })
				w.start()
				w.pull("after=0&wait=5s")
				w.want("POST", agent.PathStop+"?verify=true", "", 204)
				w.until(agent.Verifying)
				w.want("POST", agent.PathStop+"?verify=true", "", 204)
				time.Sleep(time.Second)
				if stops {
					w.want("POST", agent.PathStop, "", 204)
				}
				s := w.until(agent.Finished)
				if got, _ := w.pull("after=0"); s.Ledger == nil || stops != (s.Ledger.Unread != "") ||
					stops == (s.Ledger.Acked == 7) || uint64(len(got)) != s.LastSeq || len(got) == 0 {
					t.Errorf("%+v, ledger %+v, pulled %d", s, s.Ledger, len(got))
				}
			})
		})
	}
}

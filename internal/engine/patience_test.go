package engine

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// trouble is what keeps a Redis from serving.
type trouble struct {
	name  string
	begin func(*world)
	end   func(*world) // nil = it does not pass
	// change adapts the plan; nil = not.
	change func(*plan.Plan)
	reason plan.Reason
	words  string
}

func prefilling(p *plan.Plan) { p.Workload.Keyspace.Prefill = true }

func answers(command, reply string) (begin, end func(*world)) {
	return func(w *world) { w.server.Answer(command, reply) }, func(w *world) { w.server.Answer(command, "") }
}

// troubles are at least one for each step of Prepare.
func troubles() []trouble {
	all := []trouble{
		{
			name:   "not started",
			begin:  func(w *world) { w.server.Kill() },
			end:    func(w *world) { w.server.Restart() },
			reason: plan.TargetUnreachable,
			words:  "is not ready: ",
		},
		{
			name: "unreachable", begin: func(w *world) {
				w.network.Set(virtualAddress,
					memnet.Swallow)
			}, end: func(w *world) { w.network.Set(virtualAddress, memnet.Pass) },
			reason: plan.TargetUnreachable, words: "no reply in time",
		},
		{
			name:   "hanging",
			begin:  func(w *world) { w.server.Stop() },
			end:    func(w *world) { w.server.Continue() },
			reason: plan.TargetUnreachable,
			words:  "accepts connections but sends no reply",
		},
		{
			name:   "loading",
			begin:  func(w *world) { w.server.SetLoading(true) },
			end:    func(w *world) { w.server.SetLoading(false) },
			reason: plan.TargetUnreachable,
			words:  "LOADING",
		},
	}
	for _, t := range []trouble{
		{name: "too many clients", words: "hello -ERR max number of clients reached", reason: plan.TargetUnreachable},
		{name: "no primary", words: "ping -MASTERDOWN Link with MASTER is down", reason: plan.TargetUnreachable},
		{name: "an election", words: "set -CLUSTERDOWN The cluster is down", reason: plan.TargetUnreachable},
		{
			name:   "too few replicas",
			words:  "set -NOREPLICAS Not enough good replicas to write.",
			reason: plan.TargetUnreachable,
		},
		{
			name:   "a failover during the prefill",
			words:  "set -READONLY You can't write against a read only replica.",
			reason: plan.PrefillFailed,
			change: prefilling,
		},
	} {
		command, reply, _ := strings.Cut(t.words, " ")
		t.begin, t.end = answers(command, reply)
		t.words = strings.TrimPrefix(reply, "-")
		all = append(all, t)
	}
	for _, t := range []trouble{
		{
			name:   "a wrong password",
			words:  "hello -WRONGPASS invalid username-password pair",
			reason: plan.AuthenticationFailed,
		},
		{name: "no password", words: "ping -NOAUTH Authentication required.", reason: plan.AuthenticationFailed},
		{name: "an unknown command", words: "set -ERR unknown command 'SET'", reason: plan.CommandInvalid},
		{
			name:   "a forbidden command",
			words:  "set -NOPERM no permissions to run the 'set' command",
			reason: plan.PermissionDenied,
		},
		{
			name:   "out of memory during the prefill",
			words:  "set -OOM command not allowed",
			reason: plan.PrefillFailed,
			change: prefilling,
		},
	} {
		command, reply, _ := strings.Cut(t.words, " ")
		t.begin, _ = answers(command, reply)
		t.words = strings.TrimPrefix(reply, "-")
		all = append(all, t)
	}
	return all
}

// TestPrepareWaits: what can pass is waited for, with its reason; what cannot pass fails at once.
func TestPrepareWaits(t *testing.T) {
	const passesAfter = 3 * time.Minute
	for _, tt := range troubles() {
		t.Run(tt.name, func(t *testing.T) {
			virtually(t, 0, func(t *testing.T, w *world) {
				p := testPlan(virtualAddress)
				if tt.change != nil {
					tt.change(p)
				}
				r, err := New(p, 0, w.dialled(), WithPatience(math.MaxInt64))
				if err != nil {
					t.Fatal(err)
				}
				defer r.close()
				tt.begin(w)
				began, ended := time.Now(), make(chan error, 1)
				var said []string
				go func() { ended <- r.Prepare(t.Context(), func(text string) { said = append(said, text) }) }()
				if tt.end != nil {
					time.Sleep(passesAfter)
					synctest.Wait()
					if awaited := r.Waiting(); awaited == nil || awaited.Reason != tt.reason ||
						!strings.Contains(awaited.Message, tt.words) {
						t.Errorf("it waits for %v, want %s with %q", awaited, tt.reason, tt.words)
					}
					tt.end(w)
				}
				err = <-ended
				took := time.Since(began)
				if tt.end == nil {
					e, ok := errors.AsType[*plan.Error](err)
					if !ok || e.Reason != tt.reason || !strings.Contains(e.Message, tt.words) || took > time.Second {
						t.Errorf("after %s: %v, want %s with %q at once", took, err, tt.reason, tt.words)
					}
					return
				}
				if err != nil || r.Waiting() != nil || took > passesAfter+3*time.Second {
					t.Errorf("after %s: %v, waiting for %v", took, err, r.Waiting())
				}
				if text := strings.Join(said, "\n"); !strings.Contains(text, "waiting: ") || !strings.Contains(text, tt.words) ||
					len(said) > 20 {
					t.Errorf("it said %d sentences, want %q among them, once:\n%s", len(said), tt.words, text)
				}
			})
		})
	}
}

// TestPatienceEnds: what can pass and does not fails when the patience is over, and an interrupt ends the wait at once.
func TestPatienceEnds(t *testing.T) {
	for _, tt := range troubles() {
		if tt.end == nil {
			continue
		}
		t.Run(tt.name, func(t *testing.T) {
			virtually(t, 0, func(t *testing.T, w *world) {
				p := testPlan(virtualAddress)
				if tt.change != nil {
					tt.change(p)
				}
				tt.begin(w)
				began := time.Now()
				wantReason(t, p, tt.reason, tt.words, w.dialled(), WithPatience(30*time.Second))
				if took := time.Since(began); took < 30*time.Second || took > 35*time.Second {
					t.Errorf("it took %s, want 30 s", took)
				}
				wantReason(t, p, tt.reason, "; waited 30s for that to pass", w.dialled(), WithPatience(30*time.Second))
				began = time.Now()
				wantReason(t, p, tt.reason, tt.words, w.dialled(), WithPatience(0))
				if took := time.Since(began); took > 3*time.Second {
					t.Errorf("without patience it took %s", took)
				}
				r, err := New(p, 0, w.dialled(), WithPatience(math.MaxInt64))
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				began = time.Now()
				if err := r.Prepare(ctx, nil); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > time.Minute {
					t.Errorf("after %s: %v", time.Since(began), err)
				}
			})
		})
	}
}

// TestCommandsThatNeverReply: a command without a reply, though others get one, is not waited for until the end of all
// patience; those before it are not run again.
func TestCommandsThatNeverReply(t *testing.T) {
	virtually(t, 0, func(t *testing.T, w *world) {
		p := testPlan(virtualAddress)
		p.Workload.Commands = []plan.Command{
			{Name: "count", Weight: 1, Words: []string{"INCR", "counter"}},
			{Name: "take", Weight: 1, Words: []string{"BLPOP", "list", "0"}},
		}
		w.server.Answer("BLPOP", memredis.NoReply)
		began := time.Now()
		wantReason(t, p, plan.CommandInvalid, `the command "take" (BLPOP) got no reply`, w.dialled(),
			WithPatience(math.MaxInt64))
		if took := time.Since(began); took > time.Minute || w.server.Calls("INCR") != 1 ||
			w.server.Calls("BLPOP") != triesMost {
			t.Errorf("after %s, %d INCR, %d BLPOP", took, w.server.Calls("INCR"), w.server.Calls("BLPOP"))
		}
	})
}

// TestPrefillThatGoesOn: an attempt that makes progress is not waited for any more, and its time is not counted against
// the patience.
func TestPrefillThatGoesOn(t *testing.T) {
	virtually(t, 0, func(t *testing.T, w *world) {
		p := testPlan(virtualAddress)
		p.Workload.Keyspace.Keys, p.Workload.Keyspace.Prefill = 50_000, true
		r, err := New(p, 0, w.dialled(), WithPatience(20*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		defer r.close()
		refuse, accept := answers("set", "-READONLY You can't write against a read only replica.")
		refuse(w)
		time.AfterFunc(10*time.Second, func() {
			accept(w)
			w.server.SetCost(time.Millisecond) // it takes 50 s
		})
		time.AfterFunc(50*time.Second, func() {
			if awaited := r.Waiting(); awaited != nil {
				t.Errorf("while it prefills it waits for %v", awaited)
			}
			refuse(w)
		})
		time.AfterFunc(65*time.Second, func() { w.server.SetCost(0); accept(w) })
		if err := r.Prepare(t.Context(), nil); err != nil {
			t.Error(err)
		}
	})
}

// TestLedgerIsPreparedOnce: attempts that fail leave nothing behind in Redis.
func TestLedgerIsPreparedOnce(t *testing.T) {
	virtually(t, 0, func(t *testing.T, w *world) {
		p := testPlan(virtualAddress)
		p.Verify = &plan.Verify{Share: 0.1}
		r, err := New(p, 0, w.dialled(), WithPatience(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		defer r.close()
		begin, end := answers("pexpire", "-CLUSTERDOWN The cluster is down")
		begin(w)
		time.AfterFunc(30*time.Second, func() { end(w) })
		if err := r.Prepare(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if found := w.server.Keys("ledger:"); len(found) != len(r.loops) {
			t.Errorf("%d keys of %d loops: %q", len(found), len(r.loops), found)
		}
	})
}

// TestWaitsAreToldOnce: a failure is told once, whatever succeeds beside it, and again after progress was told.
func TestWaitsAreToldOnce(t *testing.T) {
	told := 0
	r := &Runner{patience: math.MaxInt64}
	w := r.newWait(func(string) { told++ })
	failed := &plan.Error{Reason: plan.TargetUnreachable, Message: "max number of clients reached", Passes: true}
	for _, step := range []struct {
		name string
		do   func()
		want int
	}{
		{"a failure", func() {}, 1},
		{"the same", func() {}, 1},
		{"after another connection succeeded", w.over, 1},
		{"after progress", w.advanced, 2},
	} {
		step.do()
		if err := w.failed(failed); err != nil || told != step.want || r.Waiting() != failed {
			t.Errorf("%s: told %d times, want %d; %v, waiting for %v", step.name, told, step.want, err, r.Waiting())
		}
	}
}

package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// Servers before Redis 6, and proxies, do not know HELLO, or INFO: the load runs with RESP2, and says so.
func TestServersWithoutHello(t *testing.T) {
	const unknown = "-ERR unknown command `HELLO`, with args beginning with: `3`, "
	for _, tc := range []struct {
		name, hello, info string
		driver            plan.Driver
		notes             []string
	}{
		{"Redis 5", unknown, "", "", []string{"RESP2: the server does not know HELLO"}},
		{"Redis 5 with go-redis", unknown, "", plan.GoRedisDriver, []string{"RESP2: the server does not know HELLO"}},
		{"Envoy", "-ERR unknown command 'hello', with args beginning with: 3", "-ERR unknown command 'info'", "", []string{
			"RESP2: the server does not know HELLO",
		}},
		{"an old Envoy", "-unsupported command 'hello'", "-unsupported command 'info'", "", []string{
			"RESP2: the server does not know HELLO",
		}},
		{"twemproxy", memredis.HangUp, memredis.HangUp, "", []string{
			"RESP2: " + virtualAddress + " gives no reply to HELLO though it answers PING",
			virtualAddress + " gives no reply to INFO though it answers PING: it looks like a proxy, such as twemproxy",
		}},
		{"a proxy that never answers", memredis.NoReply, memredis.NoReply, "", []string{
			"RESP2: " + virtualAddress + " gives no reply to HELLO though it answers PING",
			virtualAddress + " gives no reply to INFO though it answers PING: it looks like a proxy, such as twemproxy",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtually(t, time.Millisecond, func(t *testing.T, w *world) {
				w.says("HELLO", tc.hello)
				w.says("INFO", tc.info)
				p := testPlan(virtualAddress)
				p.Client.Driver = tc.driver
				r, err := New(p, 0, w.dialled())
				if err != nil {
					t.Fatal(err)
				}
				var said []string
				if err := r.Prepare(t.Context(), func(text string) { said = append(said, text) }); err != nil {
					t.Fatalf("%v; it said %q", err, said)
				}
				hellos := w.server.Calls("HELLO")
				_, wait := inBackground(t, t.Context(), r)
				o, err := wait()
				if err != nil || o.sum.OK == 0 || o.sum.Fail+o.sum.Unknown > 0 {
					t.Errorf("%v, %s", err, describe(o))
				}
				if more := w.server.Calls("HELLO") - hellos; more > 0 && tc.driver == "" {
					t.Errorf("HELLO was sent %d times after it was known to be missing", more)
				}
				notes := r.Notes()
				if !slices.EqualFunc(notes, tc.notes, strings.Contains) {
					t.Errorf("noted %q, want %q", notes, tc.notes)
				}
				for _, note := range notes {
					if !slices.Contains(said, note) {
						t.Errorf("%q was not said while it prepared: %q", note, said)
					}
				}
			})
		})
	}
}

// says makes the server reply so to a command, or not at all.
func (w *world) says(command, reply string) {
	if reply == memredis.HangUp {
		w.server.Script(command, func(string, []string) any { return memredis.HangUp })
		return
	}
	w.server.Answer(command, reply)
}

// What a proxy does not pass on and the plan needs is named, with what to set.
func TestWhatAProxyDoesNotPassOn(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*plan.Plan)
		reason plan.Reason
		words  string
	}{
		{
			"go-redis, which cannot do without HELLO",
			func(p *plan.Plan) { p.Client.Driver = plan.GoRedisDriver },
			plan.PlanInvalid,
			"GoRedis sends HELLO on every connection, to which " + virtualAddress + " gives no reply: set Native",
		},
		{
			"a database", func(p *plan.Plan) { p.Target.Database = 1 },
			plan.TargetUnreachable, "closes the connection without a reply to SELECT",
		},
		{
			"a command", func(p *plan.Plan) { p.Workload.Commands[0].Words = []string{"DBSIZE"} },
			plan.CommandInvalid, `gives no reply to the command "set" (DBSIZE) though it answers PING`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			virtually(t, 0, func(t *testing.T, w *world) {
				for _, command := range []string{"HELLO", "INFO", "SELECT", "DBSIZE"} {
					w.says(command, memredis.HangUp)
				}
				p := testPlan(virtualAddress)
				tc.change(p)
				wantReason(t, p, tc.reason, tc.words, w.dialled())
			})
		})
	}
}

// A server that ends while it is greeted is no proxy.
func TestAServerThatEndsIsNoProxy(t *testing.T) {
	virtually(t, 0, func(t *testing.T, w *world) {
		times := 0
		w.server.Script("HELLO", func(string, []string) any {
			if times++; times <= 2 {
				return memredis.HangUp
			}
			return nil
		})
		r, err := New(testPlan(virtualAddress), 0, w.dialled())
		if err != nil {
			t.Fatal(err)
		}
		err = r.Prepare(t.Context(), nil)
		if failed, ok := errors.AsType[*plan.Error](err); ok || err != nil {
			t.Fatal(failed, err)
		}
		if notes := r.Notes(); len(notes) > 0 || r.run.Routes.Dialer.Speaks() != 3 {
			t.Errorf("it is taken for a proxy: %q", notes)
		}
		r.close()
	})
}

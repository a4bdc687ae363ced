//go:build integration

package clients

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/adapter"
	"github.com/redquake/redquake/internal/adapter/goclients"
	"github.com/redquake/redquake/internal/adapter/wire"
	"github.com/redquake/redquake/internal/engine"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/builders"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// heard is what an adapter was told, and what it said of it, on the way to and from the agent.
type heard struct {
	mu      sync.Mutex
	asked   map[uint64]string // by request, the words of its first command
	classes map[uint64]wire.OutcomeClass
	done    []int64 // when there was a success, CLOCK_MONOTONIC
}

// between relays the messages of an adapter and an agent, and keeps what the adapter says. It returns the socket for
// the adapter; agent is that of the agent.
func between(t *testing.T, agent string) (socket string, h *heard) {
	t.Helper()
	h = &heard{asked: map[uint64]string{}, classes: map[uint64]wire.OutcomeClass{}}
	socket = filepath.Join(filepath.Dir(agent), "adapter.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		defer from.Close()
		var to net.Conn
		err = await.Try(t.Context(), time.Minute, func() (err error) {
			to, err = net.Dial("unix", agent)
			return err
		})
		if err != nil {
			t.Error(err)
			return
		}
		defer to.Close()
		go func() {
			h.relayRequests(from, to)
			_ = from.Close()
		}()
		h.relay(to, from)
	}()
	return socket, h
}

// relayRequests passes on what an agent sends until it ends.
func (h *heard) relayRequests(to io.Writer, from io.Reader) {
	messages := wire.NewReader(io.TeeReader(from, to))
	for {
		name, fields, err := messages.Next()
		if err != nil {
			return
		}
		if name == wire.NameRequests {
			_ = fields.Requests(func(r wire.Request) {
				h.mu.Lock()
				defer h.mu.Unlock()
				h.asked[r.ID] = string(bytes.Join(r.Commands[0], []byte(" ")))
			})
		}
	}
}

// relay passes on what an adapter sends until it ends.
func (h *heard) relay(to io.Writer, from io.Reader) {
	messages := wire.NewReader(io.TeeReader(from, to))
	for {
		name, fields, err := messages.Next()
		if err != nil {
			return
		}
		if name == wire.NameOutcomes {
			_ = fields.Outcomes(func(o *wire.Outcome) error {
				h.mu.Lock()
				defer h.mu.Unlock()
				h.classes[o.ID] = o.Class
				if o.Class.Succeeded() {
					h.done = append(h.done, o.Done)
				}
				return nil
			})
		}
	}
}

// longest is the longest time without a success.
func (h *heard) longest() (from, to int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	slices.Sort(h.done)
	for i := 1; i < len(h.done); i++ {
		if h.done[i]-h.done[i-1] > to-from {
			from, to = h.done[i-1], h.done[i]
		}
	}
	return from, to
}

// run starts the adapter of a driver on a socket, as a sidecar would.
func run(t *testing.T, d driver, socket string) {
	t.Helper()
	if slices.Contains(goclients.Drivers(), d.name) {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_ = goclients.Serve(context.Background(), conn, d.name, goclients.Options{Now: adapter.Monotonic})
		}()
		return
	}
	startProgram(t, program(t, d), socket)
}

// planFor is a load of 200 requests a second through the adapter at a socket.
func planFor(d driver, address, socket string, length time.Duration) *plan.Plan {
	p := builders.Plan()
	p.Pods, p.Interval = 1, 100*time.Millisecond
	p.Target = plan.Target{Addresses: []string{address}}
	p.Client = plan.Client{
		Connections:    400,
		Pipeline:       1,
		DialTimeout:    10 * time.Second,
		RequestTimeout: 10 * time.Second,
		Protocol:       3,
		Driver:         plan.Driver(d.name),
		Adapter:        &plan.Adapter{Socket: socket},
	}
	p.Shape = plan.Shape{Rate: 200, Duration: length}
	p.Workload = plan.Workload{
		Commands: []plan.Command{{Name: "incr", Weight: 1, Words: []string{"INCR", "{key}"}}},
		Keyspace: plan.Keyspace{Prefix: "k", Keys: 100, Distribution: plan.Uniform},
	}
	p.Probe, p.Info = plan.Probe{}, 0
	return p
}

// The outage in the record is the one that the adapter itself told of: its ends are those of its last success before
// and of its first after. The server was stopped, or killed and started again.
func TestPlantedOutages(t *testing.T) {
	each(t, func(t *testing.T, d driver) {
		for name, plant := range map[string]func(s *redistest.Server){
			"stop": func(s *redistest.Server) {
				s.Stop()
				await.Pass(700*time.Millisecond, "the planted outage")
				s.Cont()
			},
			"kill": func(s *redistest.Server) {
				s.Kill()
				await.Pass(500*time.Millisecond, "the planted outage")
				s.Restart()
			},
		} {
			if d.never && name == "kill" {
				continue
			}
			t.Run(name, func(t *testing.T) {
				server := redistest.Start(t)
				agent := filepath.Join(t.TempDir(), "agent.sock")
				socket, h := between(t, agent)
				r, err := engine.New(planFor(d, server.Address(), agent, 4*time.Second), 0)
				if err != nil {
					t.Fatal(err)
				}
				run(t, d, socket)
				if err := r.Prepare(t.Context(), func(s string) { t.Log(s) }); err != nil {
					t.Fatal(err)
				}
				start := time.Now().Add(10 * time.Millisecond)
				planted := make(chan struct{})
				go func() {
					defer close(planted)
					await.PassTo(start.Add(time.Second), "there is a load before the outage")
					plant(server)
				}()
				var longest record.Gap
				offset := int64(time.Since(start)) - adapter.Monotonic()
				err = r.Run(t.Context(), start, func(iv *record.Interval) {
					for _, g := range iv.Gaps {
						if g.To-g.From > longest.To-longest.From {
							longest = g
						}
					}
				})
				<-planted
				if err != nil {
					t.Fatal(err)
				}
				from, to := h.longest()
				from, to = from+offset, to+offset
				t.Logf("the adapter: %s to %s; the record: %s to %s", time.Duration(from), time.Duration(to),
					time.Duration(longest.From), time.Duration(longest.To))
				if to-from < int64(400*time.Millisecond) {
					t.Errorf("the adapter saw no outage")
				}
				const most = int64(5 * time.Millisecond)
				if off := max(longest.From-from, from-longest.From); off > most {
					t.Errorf("its begin is off by %s", time.Duration(off))
				}
				if off := max(longest.To-to, to-longest.To); off > most {
					t.Errorf("its end is off by %s", time.Duration(off))
				}
			})
		}
	})
}

// An adapter that ends in the middle of a load ends the load, which says so, and keeps the record until then.
func TestAdapterThatEnds(t *testing.T) {
	server := redistest.Start(t)
	agent := filepath.Join(t.TempDir(), "agent.sock")
	d := driver{name: "GoRedis"}
	r, err := engine.New(planFor(d, server.Address(), agent, time.Minute), 0)
	if err != nil {
		t.Fatal(err)
	}
	conns := make(chan net.Conn, 1)
	go func() {
		_ = await.Try(t.Context(), time.Minute, func() error {
			conn, err := net.Dial("unix", agent)
			if err == nil {
				conns <- conn
				err = goclients.Serve(context.Background(), conn, d.name, goclients.Options{Now: adapter.Monotonic})
			}
			return err
		})
	}()
	if err := r.Prepare(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	var ok uint64
	end := sync.OnceFunc(func() { _ = (<-conns).Close() })
	err = r.Run(t.Context(), time.Now(), func(iv *record.Interval) {
		ok += iv.Ops[0].OK
		if ok > 100 {
			end()
		}
	})
	var failed *plan.Error
	if !errors.As(err, &failed) || failed.Reason != plan.AdapterFailed ||
		!strings.Contains(failed.Message, "the adapter of driver GoRedis has closed its connection") {
		t.Error(err)
	}
	if ok < 100 || ok > 6000 {
		t.Errorf("%d requests are in the record", ok)
	}
}

// A load that a number of requests ends does so although the library never answers, once requests had the time of
// client.requestTimeout to end: they are unknown.
func TestALibraryThatNeverAnswers(t *testing.T) {
	server := redistest.Start(t)
	agent := filepath.Join(t.TempDir(), "agent.sock")
	p := planFor(driver{name: "GoRedis"}, server.Address(), agent, 0)
	p.Shape = plan.Shape{Users: 5, Requests: 5}
	r, err := engine.New(p, 0)
	if err != nil {
		t.Fatal(err)
	}
	go mute(t, agent)
	if err := r.Prepare(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	var sum record.Counts
	if err := r.Run(t.Context(), time.Now(), func(iv *record.Interval) { sum.Add(&iv.Ops[0].Counts) }); err != nil {
		t.Fatal(err)
	}
	if sum.Sent != 5 || sum.Unknown != 5 {
		t.Errorf("%+v", sum)
	}
}

// mute is an adapter that answers pings, and no request.
func mute(t *testing.T, agent string) {
	var conn net.Conn
	err := await.Try(t.Context(), time.Minute, func() (err error) {
		conn, err = net.Dial("unix", agent)
		return err
	})
	if err != nil {
		t.Error(err)
		return
	}
	hello := wire.Hello{Version: 1, Driver: "GoRedis", Library: "none", LibraryVersion: "0", Runtime: "none"}
	_ = wire.Write(conn, hello.Append(nil))
	reader := wire.NewReader(conn)
	for {
		name, fields, err := reader.Next()
		if err != nil {
			return
		}
		switch name {
		case wire.NameConnect:
			_ = wire.Write(conn, wire.Ready{Capacity: 5}.Append(nil))
		case wire.NamePing:
			at, _ := fields.Ping()
			_ = wire.Write(conn, wire.Pong{Time: at, Now: adapter.Monotonic()}.Append(nil))
		}
	}
}

// What the library refuses ends the preparation at once, with its words; an adapter that does not come within the
// time that a run waits for what can pass does, too.
func TestPreparationsThatFail(t *testing.T) {
	server := redistest.NewServer(t, redistest.Options{Password: "secret"})
	for _, row := range []struct {
		name   string
		change func(p *plan.Plan)
		reason plan.Reason
		want   string
	}{
		{
			"option",
			func(p *plan.Plan) { p.Client.Options = plan.Options{"PoolSze": int64(5)} },
			plan.PlanInvalid,
			"spec.client.options.PoolSze: GoRedis: redis.Options has no such field",
		},
		{
			"type",
			func(p *plan.Plan) { p.Client.Options = plan.Options{"PoolSize": "5"} },
			plan.PlanInvalid,
			`spec.client.options.PoolSize: GoRedis: is a int, not "5"`,
		},
		{
			"panic",
			func(p *plan.Plan) { p.Client.Options = plan.Options{"PoolSize": int64(-1)} },
			plan.PlanInvalid,
			"spec.client.options: GoRedis: ",
		},
		{
			"no adapter",
			func(p *plan.Plan) { p.Client.Adapter = &plan.Adapter{Command: []string{"/there/is/none"}} },
			plan.AdapterFailed,
			"the adapter does not start",
		},
		{
			"no hello",
			func(p *plan.Plan) { p.Client.Adapter = &plan.Adapter{Command: []string{"cat"}} },
			plan.AdapterFailed,
			"the adapter has ended with exit status 1: cat: ",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := planFor(driver{name: "GoRedis"}, server.Address(), "", time.Second)
			p.Client.Adapter = nil
			password := filepath.Join(t.TempDir(), "password")
			if err := os.WriteFile(password, []byte("secret"), 0o600); err != nil {
				t.Fatal(err)
			}
			p.Target.PasswordFile = password
			row.change(p)
			r, err := engine.New(p, 0)
			if err != nil {
				t.Fatal(err)
			}
			err = r.Prepare(context.Background(), nil)
			var failed *plan.Error
			if !errors.As(err, &failed) || failed.Reason != row.reason || !strings.Contains(failed.Message, row.want) {
				t.Errorf("%v, without %q", err, row.want)
			}
		})
	}
}

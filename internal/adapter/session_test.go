package adapter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tinylib/msgp/msgp"

	"github.com/redquake/redquake/internal/adapter/wire"
	"github.com/redquake/redquake/internal/redis/resp"
)

// peer is the adapter's end of a session in virtual time.
type peer struct {
	t      *testing.T
	conn   net.Conn
	reader *wire.Reader
	now    func() int64
}

var greeting = wire.Hello{
	Version:        1,
	Driver:         "Fake",
	Library:        "fake",
	LibraryVersion: "1.0",
	Runtime:        "none",
}

// world runs both ends in virtual time: the session over there, the adapter as given.
func world(t *testing.T, adapter func(p *peer), agent func(t *testing.T, conn net.Conn, o Options)) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		now := func() int64 { return int64(time.Since(began)) + 1e9 }
		here, there := net.Pipe()
		var group sync.WaitGroup
		group.Go(func() {
			defer there.Close()
			adapter(&peer{t: t, conn: there, reader: wire.NewReader(there), now: now})
		})
		agent(t, here, Options{Driver: greeting.Driver, Now: now})
		here.Close()
		group.Wait()
	})
}

func (p *peer) send(message []byte) {
	_ = wire.Write(p.conn, message)
}

// next returns the next message that is not a ping, whose pings are answered.
func (p *peer) next() (string, *wire.Fields) {
	for {
		name, fields, err := p.reader.Next()
		if err != nil {
			return "", nil
		}
		if name != wire.NamePing {
			return name, fields
		}
		at, _ := fields.Ping()
		p.send(wire.Pong{Time: at, Now: p.now(), CPU: 5e6, Memory: 1 << 20}.Append(nil))
	}
}

// welcome says hello and ready.
func (p *peer) welcome(capacity int) {
	p.send(greeting.Append(nil))
	if name, fields := p.next(); name == wire.NameConnect {
		if _, err := fields.Connect(); err != nil {
			p.t.Error(err)
		}
		p.send(wire.Ready{Capacity: capacity, Options: map[string]string{"retries": "3"}}.Append(nil))
	}
}

// requests returns the requests of the next message.
func (p *peer) requests() []wire.Request {
	var all []wire.Request
	if name, fields := p.next(); name == wire.NameRequests {
		if err := fields.Requests(func(r wire.Request) { all = append(all, r) }); err != nil {
			p.t.Error(err)
		}
	}
	return all
}

func (p *peer) outcome(o wire.Outcome, replies []any) {
	b := wire.Batch{Name: wire.NameOutcomes}
	b.Add(func(dst []byte) []byte {
		dst, err := o.Append(dst, replies)
		if err != nil {
			p.t.Error(err)
		}
		return dst
	})
	_ = b.Send(p.conn)
}

func command(words ...string) [][][]byte {
	var all [][]byte
	for _, word := range words {
		all = append(all, []byte(word))
	}
	return [][][]byte{all}
}

var settings = wire.Settings{
	Topology:  wire.Standalone,
	Addresses: []string{"127.0.0.1:6379"},
	Options:   map[string]any{"retries": int64(3), "nested": map[string]any{"on": true, "list": []any{"a", 1.5, nil}}},
	TLS:       &wire.TLS{CA: "PEM", Insecure: true},
	InFlight:  10,
}

func open(t *testing.T, conn net.Conn, o Options) *Session {
	s, err := Open(t.Context(), conn, o)
	if err == nil {
		err = s.Connect(t.Context(), settings)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConnect(t *testing.T) {
	world(t, func(p *peer) {
		p.send(greeting.Append(nil))
		for range 2 {
			_, fields := p.next()
			got, err := fields.Connect()
			if err != nil || fmt.Sprint(got.Options) != fmt.Sprint(settings.Options) || *got.TLS != *settings.TLS ||
				got.Addresses[0] != settings.Addresses[0] || got.InFlight != 10 || got.Password != "" {
				p.t.Errorf("connect: %+v, %v", got, err)
			}
			if p.now() < 2e9 {
				time.Sleep(2 * time.Second)
				p.send((&wire.Refusal{Kind: wire.Unreachable, Field: "addresses", Message: "refused"}).Append(nil))
			}
		}
		p.send(wire.Ready{Capacity: 2, Options: map[string]string{"retries": "3"}}.Append(nil))
		p.next() // the end
	}, func(t *testing.T, conn net.Conn, o Options) {
		s, err := Open(t.Context(), conn, o)
		if err != nil || s.Hello != greeting {
			t.Fatal(s, err)
		}
		var refusal *wire.Refusal
		if err := s.Connect(t.Context(), settings); !errors.As(err, &refusal) || refusal.Kind != wire.Unreachable ||
			err.Error() != "addresses: refused" {
			t.Fatal(err)
		}
		if err := s.Connect(t.Context(), settings); err != nil || s.Ready.Capacity != 2 || s.Ready.Options["retries"] != "3" {
			t.Fatal(s.Ready, err)
		}
		s.Close()
	})
}

func TestRequests(t *testing.T) {
	world(t, func(p *peer) {
		p.welcome(2)
		for {
			all := p.requests()
			if all == nil {
				return
			}
			for _, r := range all {
				replies := []any{nil, int64(-7), 1.5, true, []byte("\x00\xff"), "text", []any{int64(1), []any{}}}
				if r.Flags == 0 {
					replies = nil
				}
				p.outcome(wire.Outcome{ID: r.ID, Sent: p.now(), Done: p.now(), Class: wire.ClassOK}, replies)
			}
		}
	}, func(t *testing.T, conn net.Conn, o Options) {
		s := open(t, conn, o)
		defer s.Close()
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				o, begun, err := s.Perform(t.Context(), command("GET", "\x00k"), true)
				if err != nil || !begun || o.Class != wire.ClassOK || len(o.Replies) != 7 {
					t.Error(o, begun, err)
				}
				if got := fmt.Sprintf("%+v", o.Replies); got != fmt.Sprintf("%+v", wantedReplies) {
					t.Errorf("replies: %s", got)
				}
				if o, _, err := s.Perform(t.Context(), command("GET", "k"), false); err != nil || o.Replies != nil {
					t.Error(o, err)
				}
			})
		}
		group.Wait()
		time.Sleep(time.Minute)
		if u := s.Usage(); u.CPU != 5*time.Millisecond || u.Memory != 1<<20 {
			t.Errorf("usage: %+v", u)
		}
		if err := s.Err(); err != nil {
			t.Error(err)
		}
	})
}

var wantedReplies = []resp.Value{
	{Type: '_'},
	{Type: ':', Text: "-7"},
	{Type: ',', Text: "1.5"},
	{Type: '#', Text: "t"},
	{Type: '$', Text: "\x00\xff"},
	{Type: '$', Text: "text"},
	{Type: '*', Items: []resp.Value{{Type: ':', Text: "1"}, {Type: '*'}}},
}

// Whatever an adapter does that the protocol forbids ends the session with a sentence that says what it was; the
// request in flight counts as unknown.
func TestLies(t *testing.T) {
	now := func(p *peer) wire.Outcome {
		return wire.Outcome{ID: 1, Sent: p.now(), Done: p.now(), Class: wire.ClassOK}
	}
	list := func(items ...[]byte) []byte {
		b := msgp.AppendString(msgp.AppendArrayHeader(nil, 2), wire.NameOutcomes)
		b = msgp.AppendArrayHeader(b, uint32(len(items)))
		return append(b, bytes.Join(items, nil)...)
	}
	rows := []struct {
		name string
		lie  func(p *peer)
		want string
	}{
		{
			"no such request",
			func(p *peer) { o := now(p); o.ID = 7; p.outcome(o, nil) },
			"for request 7, which is not in flight",
		},
		{"twice", func(p *peer) { p.outcome(now(p), nil); p.outcome(now(p), nil) }, "for request 1, which is not in flight"},
		{
			"sent before",
			func(p *peer) { o := now(p); o.Sent -= 5; p.outcome(o, nil) },
			"sent 5ns before its request was handed over",
		},
		{"done before sent", func(p *peer) { o := now(p); o.Done--; p.outcome(o, nil) }, "done 1ns before it was sent"},
		{"done later", func(p *peer) { o := now(p); o.Done += 9; p.outcome(o, nil) }, "done 9ns after it was received"},
		{"class", func(p *peer) { o := now(p); o.Class = "fine"; p.outcome(o, nil) }, `the unknown class "fine"`},
		{"unwanted", func(p *peer) { p.outcome(now(p), []any{"x"}) }, "with replies that nobody wanted"},
		{
			"long text",
			func(p *peer) { o := now(p); o.Text = strings.Repeat("x", 1001); p.outcome(o, nil) },
			"a text of 1001 bytes",
		},
		{"not UTF-8", func(p *peer) { o := now(p); o.Text = "\xff"; p.outcome(o, nil) }, "a text is not UTF-8"},
		{
			"few fields",
			func(p *peer) { p.send(list(msgp.AppendInt(msgp.AppendArrayHeader(nil, 1), 1))) },
			"1 fields instead of 6",
		},
		{"no list", func(p *peer) {
			p.send(msgp.AppendInt(msgp.AppendString(msgp.AppendArrayHeader(nil, 2), "outcomes"), 1))
		}, `with method for "array"`},
		{"a length without bytes", func(p *peer) {
			p.send([]byte{0x92, 0xa8, 'o', 'u', 't', 'c', 'o', 'm', 'e', 's', 0xdd, 0xff, 0xff, 0xff, 0xff})
		}, "4294967295 elements in 0 bytes"},
		{"nested", func(p *peer) {
			nested := bytes.Repeat([]byte{0x91}, 1000)
			p.send(append(append([]byte{0x96}, wire.Pong{Time: 1}.Append(nil)[1:]...), append(nested, 0xc0)...))
		}, "nested more than 16 deep"},
		{"many values", func(p *peer) {
			b := bytes.Repeat([]byte{0xc0}, 2_000_001)
			o := now(p)
			head, _ := o.Append(nil, nil)
			p.send(list(append(msgp.AppendArrayHeader(head[:len(head)-1], 2_000_001), b...)))
		}, "more than 2000000 values"},
		{"too large", func(p *peer) { _, _ = p.conn.Write([]byte{1, 0, 0, 1}) }, "a message of 16777217 bytes"},
		{"no array", func(p *peer) { p.send([]byte("hi!")) }, "what is no message"},
		{"unknown", func(p *peer) { p.send(msgp.AppendString(msgp.AppendArrayHeader(nil, 1), "news")) }, `"news"`},
		{"hello again", func(p *peer) { p.send(greeting.Append(nil)) }, `a message "hello"`},
		{"half a message", func(p *peer) { _, _ = p.conn.Write([]byte{0, 0, 0, 9, 1}) }, "has closed its connection"},
		{"end", func(*peer) {}, "has closed its connection"},
		{"pong unasked", func(p *peer) { p.send(wire.Pong{Time: 1, Now: p.now()}.Append(nil)) }, "a ping that was not sent"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			world(t, func(p *peer) {
				p.welcome(10)
				p.requests()
				row.lie(p)
			}, func(t *testing.T, conn net.Conn, o Options) {
				s := open(t, conn, o)
				_, begun, err := s.Perform(t.Context(), command("PING"), false)
				<-s.Ended()
				if row.name != "twice" && (err == nil || !begun) {
					t.Errorf("begun %v, error %v", begun, err)
				}
				var failure *Failure
				if err := s.Err(); !errors.As(err, &failure) || !strings.Contains(err.Error(), row.want) ||
					!strings.HasPrefix(err.Error(), "the adapter of driver Fake ") {
					t.Errorf("%v, without %q", err, row.want)
				}
				if _, begun, err := s.Perform(t.Context(), command("PING"), false); err == nil || begun {
					t.Error("a session that has ended performs a request")
				}
				s.Close()
			})
		})
	}
}

// What comes before the session is checked as well.
func TestBeginning(t *testing.T) {
	hello := func(change func(h *wire.Hello)) func(p *peer) {
		return func(p *peer) { h := greeting; change(&h); p.send(h.Append(nil)) }
	}
	answer := func(message []byte) func(p *peer) {
		return func(p *peer) { p.send(greeting.Append(nil)); p.next(); p.send(message) }
	}
	many := map[string]string{}
	for i := range 201 {
		many[fmt.Sprint(i)] = "x"
	}
	rows := []struct {
		name    string
		adapter func(p *peer)
		want    string
	}{
		{"version", hello(func(h *wire.Hello) { h.Version = 2 }), "it speaks version 2 of the protocol, not 1"},
		{"driver", hello(func(h *wire.Hello) { h.Driver = "Other" }), "the adapter of driver Other is not that of driver Fake"},
		{"empty", hello(func(h *wire.Hello) { h.Library = "" }), "an empty text"},
		{"long", hello(func(h *wire.Hello) { h.Driver = strings.Repeat("x", 129) }), "a text of 129 bytes"},
		{"ready first", func(p *peer) { p.send(wire.Ready{Capacity: 1}.Append(nil)) }, "sent ready instead of hello"},
		{"silence", func(*peer) { time.Sleep(6 * time.Minute) }, "said nothing for 5m0s"},
		{"end", func(*peer) {}, "the adapter has closed its connection"},
		{"capacity 0", answer(wire.Ready{}.Append(nil)), "a capacity of 0, not between 1 and 10"},
		{"capacity 11", answer(wire.Ready{Capacity: 11}.Append(nil)), "a capacity of 11, not between 1 and 10"},
		{"options", answer(wire.Ready{Capacity: 1, Options: many}.Append(nil)), "201 options"},
		{"refusal", answer((&wire.Refusal{Kind: "no"}).Append(nil)), `the unknown kind "no"`},
		{"outcomes", answer(msgp.AppendString(msgp.AppendArrayHeader(nil, 1), "outcomes")), "sent outcomes instead of ready or refused"},
		{
			"silence after connect",
			func(p *peer) { p.send(greeting.Append(nil)); p.next(); time.Sleep(2 * time.Minute) },
			"said nothing for 1m30s",
		},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			world(t, row.adapter, func(t *testing.T, conn net.Conn, o Options) {
				s, err := Open(t.Context(), conn, o)
				if err == nil {
					err = s.Connect(t.Context(), settings)
				}
				var failure *Failure
				if !errors.As(err, &failure) || !strings.Contains(err.Error(), row.want) {
					t.Errorf("%v, without %q", err, row.want)
				}
			})
		})
	}
}

func TestOpenEndsWithItsContext(t *testing.T) {
	world(t, func(p *peer) { _, _ = io.Copy(io.Discard, p.conn) }, func(t *testing.T, conn net.Conn, o Options) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := Open(ctx, conn, o); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

// An adapter that stands still for 12 s is noted, one that does for 30 s ends the session, also if it does not even
// read.
func TestStandingStill(t *testing.T) {
	for _, row := range []struct {
		name  string
		still time.Duration
		reads bool
		want  string // of the session
		noted string
	}{
		{"short", 9 * time.Second, true, "", ""},
		{"noted", 12 * time.Second, true, "", "12s"},
		{"failed", time.Minute, true, "stood still: no answer to a ping for 30s", "30s"},
		{"not reading", time.Minute, false, "stood still: no answer to a ping for 30s", "30s"},
	} {
		t.Run(row.name, func(t *testing.T) {
			world(t, func(p *peer) {
				p.welcome(10)
				if row.reads {
					name, fields, _ := p.reader.Next()
					at, _ := fields.Ping()
					time.Sleep(row.still)
					if name == wire.NamePing {
						p.send(wire.Pong{Time: at, Now: p.now()}.Append(nil))
					}
					p.next()
				} else {
					time.Sleep(row.still)
				}
			}, func(t *testing.T, conn net.Conn, o Options) {
				var noted []string
				o.Stalled = func(from, to int64) {
					noted = append(noted, time.Duration(to-from).String())
				}
				s := open(t, conn, o)
				time.Sleep(20 * time.Second)
				if row.want != "" {
					<-s.Ended()
				}
				if err := s.Err(); (row.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), row.want) {
					t.Errorf("%v, not %q", err, row.want)
				}
				s.Close()
				if strings.Join(noted, " ") != row.noted {
					t.Errorf("noted %v, not %q", noted, row.noted)
				}
			})
		})
	}
}

func TestAWrongClock(t *testing.T) {
	for _, ahead := range []int64{-1e9, 1e9} {
		world(t, func(p *peer) {
			p.welcome(10)
			_, fields, _ := p.reader.Next()
			at, _ := fields.Ping()
			p.send(wire.Pong{Time: at, Now: p.now() + ahead}.Append(nil))
			p.next()
		}, func(t *testing.T, conn net.Conn, o Options) {
			s := open(t, conn, o)
			<-s.Ended()
			if err := s.Err(); err == nil || !strings.Contains(err.Error(), "its clock is not that of this system") {
				t.Error(err)
			}
			s.Close()
		})
	}
}

// Never more requests than the adapter takes are in flight, and those that wait are not handed over.
func TestCapacity(t *testing.T) {
	world(t, func(p *peer) {
		p.welcome(2)
		var seen int
		for seen < 2 {
			seen += len(p.requests())
		}
		if name, _ := p.next(); name != "" { // pings only, for a minute
			p.t.Errorf("a third request: %s", name)
		}
	}, func(t *testing.T, conn net.Conn, o Options) {
		s := open(t, conn, o)
		var group sync.WaitGroup
		var begun [3]bool
		for i := range begun {
			group.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var err error
				if _, begun[i], err = s.Perform(ctx, command("PING"), false); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		group.Wait()
		n := 0
		for _, yes := range begun {
			if yes {
				n++
			}
		}
		if n != 2 {
			t.Errorf("%d requests begun", n)
		}
		s.Close()
	})
}

func TestTooLargeARequest(t *testing.T) {
	world(t, func(p *peer) { p.welcome(1); p.next() }, func(t *testing.T, conn net.Conn, o Options) {
		s := open(t, conn, o)
		_, begun, err := s.Perform(t.Context(), command("SET", "k", strings.Repeat("x", 17<<20)), false)
		if begun || err == nil || !strings.Contains(err.Error(), "too large for an adapter") {
			t.Error(begun, err)
		}
		s.Close()
	})
}

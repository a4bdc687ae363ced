//go:build integration

// Package clients holds every client adapter against clients/PROTOCOL.md, on real servers. An adapter that is a program
// of its own is bin/adapters/DRIVER, which hack/adapters.sh builds; REDQUAKE_ADAPTERS="RedisPy Jedis" selects some.
package clients

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/adapter"
	"github.com/redquake/redquake/internal/adapter/goclients"
	"github.com/redquake/redquake/internal/adapter/wire"
	"github.com/redquake/redquake/internal/redis/resp"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Run(m)) }

// driver is what the tests know of one.
type driver struct {
	name string
	// topologies beside standalone that the library has
	sentinel, cluster bool
	// an option that the library has, and as what it is among those in force
	option map[string]any
	shown  string
	// it does not come back after its connection was lost
	never bool
	// it does not follow a failover of sentinels
	stays bool
	// it has no client certificates
	noCertificate bool
}

var drivers = []driver{
	{
		name:     "GoRedis",
		sentinel: true,
		cluster:  true,
		option:   map[string]any{"MaxRetries": int64(7)},
		shown:    "MaxRetries=7",
	},
	{
		name:     "Rueidis",
		sentinel: true,
		cluster:  true,
		option:   map[string]any{"ConnWriteTimeout": "7s"},
		shown:    "ConnWriteTimeout=7s",
	},
	{
		name:     "RedisPy",
		sentinel: true,
		cluster:  true,
		option:   map[string]any{"socket_timeout": 7.5},
		shown:    "socket_timeout=7.5",
	},
	{
		name:     "RedisPyAsync",
		sentinel: true,
		cluster:  true,
		option:   map[string]any{"socket_timeout": 7.5},
		shown:    "socket_timeout=7.5",
	},
	{
		name:     "NodeRedis",
		sentinel: true,
		cluster:  true,
		option:   map[string]any{"socket": map[string]any{"connectTimeout": int64(7000)}},
		shown:    "socket.connectTimeout=7000",
	},
	{
		name:     "IORedis",
		sentinel: true,
		cluster:  true,
		option:   map[string]any{"connectTimeout": int64(7000)},
		shown:    "connectTimeout=7000",
	},
	{
		name:     "Lettuce",
		sentinel: true,
		cluster:  true,
		option:   map[string]any{"requestQueueSize": int64(7000)},
		shown:    "requestQueueSize=7000",
	},
	{
		name:     "Jedis",
		sentinel: true,
		cluster:  true,
		option:   map[string]any{"socketTimeoutMillis": int64(7000)},
		shown:    "socketTimeoutMillis=7000",
	},
	{
		name:     "RedisRs",
		sentinel: true,
		cluster:  true,
		stays:    true,
		option:   map[string]any{"response_timeout": "7s"},
		shown:    "response_timeout=7s",
	},
	{
		name:     "RedisRsMultiplexed",
		sentinel: true,
		never:    true,
		stays:    true,
		option:   map[string]any{"response_timeout": "7s"},
		shown:    "response_timeout=7s",
	},
	{
		name:    "GlidePython",
		cluster: true,
		option:  map[string]any{"request_timeout": int64(7000)},
		shown:   "request_timeout=7000",
	},
	{
		name:          "GlideNode",
		cluster:       true,
		noCertificate: true,
		option:        map[string]any{"requestTimeout": int64(7000)},
		shown:         "requestTimeout=7000",
	},
	{
		name:          "GlideJava",
		cluster:       true,
		noCertificate: true,
		option:        map[string]any{"requestTimeout": int64(7000)},
		shown:         "requestTimeout=7000",
	},
}

// each runs a test with every driver that is selected, several at a time.
func each(t *testing.T, test func(t *testing.T, d driver)) {
	selected := strings.Fields(os.Getenv("REDQUAKE_ADAPTERS"))
	for _, d := range drivers {
		if len(selected) > 0 && !slices.Contains(selected, d.name) {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			test(t, d)
		})
	}
}

// start starts the adapter of a driver. exited is nil for one in this process, otherwise how it ended after Close.
func start(t *testing.T, d driver) (s *adapter.Session, failed func() error, end func() error) {
	t.Helper()
	o := adapter.Options{Driver: d.name, Now: adapter.Monotonic}
	if slices.Contains(goclients.Drivers(), d.name) {
		here, there := net.Pipe()
		served := make(chan error, 1)
		go func() {
			served <- goclients.Serve(context.Background(), there, d.name, goclients.Options{Now: adapter.Monotonic})
		}()
		s, err := adapter.Open(t.Context(), here, o)
		if err != nil {
			t.Fatal(err)
		}
		end := sync.OnceValue(func() error {
			s.Close()
			return await.Chan(t, "the end of the adapter", served)
		})
		t.Cleanup(func() { _ = end() })
		return s, s.Err, end
	}
	p, err := adapter.Start(t.Context(), []string{program(t, d)}, o)
	if err != nil {
		t.Fatal(err)
	}
	end = sync.OnceValue(func() error {
		p.Close()
		return p.ExitError()
	})
	t.Cleanup(func() { _ = end() })
	return p.Session, p.Err, end
}

// program is the path of a driver's adapter.
func program(t *testing.T, d driver) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../bin/adapters", d.name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: hack/adapters.sh builds it", err)
	}
	return path
}

// startProgram runs an adapter until the test ends, or its agent does.
func startProgram(t *testing.T, program, socket string) {
	t.Helper()
	var words bytes.Buffer
	c := exec.Command(program, socket)
	c.Stderr = &words
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		patience := time.AfterFunc(time.Minute, func() {
			t.Error("the adapter does not end at SIGTERM")
			_ = c.Process.Kill()
		})
		defer patience.Stop()
		_ = c.Wait()
		if t.Failed() {
			t.Logf("the adapter wrote:\n%s", words.String())
		}
	})
}

// connect has a new adapter connect with the settings.
func connect(t *testing.T, d driver, settings wire.Settings) *adapter.Session {
	t.Helper()
	s, failed, _ := start(t, d)
	if settings.InFlight == 0 {
		settings.InFlight = 50
	}
	if err := answer(t, s, settings); err != nil {
		t.Fatalf("%v, %v", err, failed())
	}
	t.Cleanup(func() {
		if err := failed(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// answer has an adapter connect until it is ready, or refuses for another reason than one that can pass: some libraries
// give a connection less time than a busy machine needs.
func answer(t *testing.T, s *adapter.Session, settings wire.Settings) error {
	t.Helper()
	var err error
	await.Until(t, "another answer than unreachable", func() error {
		err = s.Connect(t.Context(), settings)
		if refusal, ok := errors.AsType[*wire.Refusal](err); ok && refusal.Kind == wire.Unreachable {
			return err
		}
		return nil
	})
	return err
}

// patient are settings with which the library waits for a busy server for seconds: some wait for 250 ms by default.
func patient(d driver, address string) wire.Settings {
	settings := standalone(address)
	settings.Options = d.option
	return settings
}

func standalone(address string) wire.Settings {
	return wire.Settings{Topology: wire.Standalone, Addresses: []string{address}}
}

func words(line ...string) [][]byte {
	all := make([][]byte, len(line))
	for i, word := range line {
		all[i] = []byte(word)
	}
	return all
}

// do performs a request and returns its outcome.
func do(t *testing.T, s *adapter.Session, commands ...[][]byte) wire.Outcome {
	t.Helper()
	o, _, err := s.Perform(t.Context(), commands, true)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// until repeats a request until it succeeds.
func until(t *testing.T, s *adapter.Session, commands ...[][]byte) wire.Outcome {
	t.Helper()
	var o wire.Outcome
	await.Until(t, "a success", func() error {
		o = do(t, s, commands...)
		return await.That(o.Class.Succeeded(), "%s: %s", o.Class, o.Text)
	})
	return o
}

// same reports whether a reply is as wanted; libraries make numbers of other types of some replies, and the other way
// round.
func same(got, want resp.Value) bool {
	if want.Type == '*' {
		return got.Type == '*' && slices.EqualFunc(got.Items, want.Items, same)
	}
	return got.Text == want.Text && (got.Type == '_') == (want.Type == '_')
}

func text(s string) resp.Value   { return resp.Value{Type: '$', Text: s} }
func number(n string) resp.Value { return resp.Value{Type: ':', Text: n} }
func list(items ...resp.Value) resp.Value {
	return resp.Value{Type: '*', Items: items}
}

var null = resp.Value{Type: '_'}

func TestCommands(t *testing.T) {
	each(t, func(t *testing.T, d driver) {
		server := redistest.Shared(t)
		s := connect(t, d, patient(d, server.Address()))
		if s.Hello.Driver != d.name || s.Ready.Capacity < 1 {
			t.Errorf("%+v, %+v", s.Hello, s.Ready)
		}
		t.Logf("%s %s, %s: %v", s.Hello.Library, s.Hello.LibraryVersion, s.Hello.Runtime, s.Ready.Options)
		binary, large := "\x00\r\n\xff\xfe", strings.Repeat("0123456789abcdef", 1<<16)
		rows := []struct {
			commands [][][]byte
			class    wire.OutcomeClass
			want     []resp.Value
			text     string // how that of an error begins; some libraries drop ERR
		}{
			{[][][]byte{words("SET", "key", "value")}, wire.ClassOK, []resp.Value{text("OK")}, ""},
			{[][][]byte{words("GET", "key")}, wire.ClassOK, []resp.Value{text("value")}, ""},
			{[][][]byte{words("get", "key")}, wire.ClassOK, []resp.Value{text("value")}, ""},
			{[][][]byte{words("GET", "none")}, wire.ClassNil, []resp.Value{null}, ""},
			{[][][]byte{words("SET", binary, binary)}, wire.ClassOK, []resp.Value{text("OK")}, ""},
			{[][][]byte{words("GET", binary)}, wire.ClassOK, []resp.Value{text(binary)}, ""},
			{[][][]byte{words("SET", "large", large)}, wire.ClassOK, []resp.Value{text("OK")}, ""},
			{[][][]byte{words("GET", "large")}, wire.ClassOK, []resp.Value{text(large)}, ""},
			{[][][]byte{words("SET", "key", "v", "NX")}, wire.ClassNil, []resp.Value{null}, ""},
			{[][][]byte{words("INCR", "n")}, wire.ClassOK, []resp.Value{number("1")}, ""},
			{[][][]byte{words("RPUSH", "l", "a", "b")}, wire.ClassOK, []resp.Value{number("2")}, ""},
			{[][][]byte{words("LRANGE", "l", "0", "-1")}, wire.ClassOK, []resp.Value{list(text("a"), text("b"))}, ""},
			{[][][]byte{words("LRANGE", "none", "0", "-1")}, wire.ClassOK, []resp.Value{list()}, ""},
			{[][][]byte{words("HSET", "h", "f", "v")}, wire.ClassOK, []resp.Value{number("1")}, ""},
			{[][][]byte{words("HGETALL", "h")}, wire.ClassOK, []resp.Value{list(text("f"), text("v"))}, ""},
			{[][][]byte{words("HMGET", "h", "f", "none")}, wire.ClassOK, []resp.Value{list(text("v"), null)}, ""},
			{
				[][][]byte{words("EVAL", "return {KEYS[1], ARGV[1], 7, {}}", "1", "key", "x")},
				wire.ClassOK,
				[]resp.Value{list(text("key"), text("x"), number("7"), list())},
				"",
			},
			{[][][]byte{words("PING")}, wire.ClassOK, []resp.Value{text("PONG")}, ""},
			{
				[][][]byte{words("GET", "key"), words("GET", "none"), words("INCR", "n")},
				wire.ClassOK,
				[]resp.Value{text("value"), null, number("2")},
				"",
			},
			{[][][]byte{words("GET", "none"), words("GET", "none")}, wire.ClassOK, []resp.Value{null, null}, ""},
			{[][][]byte{words("LPUSH", "key", "x")}, wire.ClassReply, nil, "WRONGTYPE"},
			{[][][]byte{words("SET", "a", "1"), words("LPUSH", "key", "x"), words("SET", "b", "1")}, wire.ClassReply, nil, "WRONGTYPE"},
			{[][][]byte{words("NOSUCHCOMMAND", "key")}, wire.ClassReply, nil, ""},
			{[][][]byte{words("GET", "b")}, wire.ClassOK, []resp.Value{text("1")}, ""},
		}
		for _, row := range rows {
			name := fmt.Sprintf("%.60q", row.commands)
			o := do(t, s, row.commands...)
			if o.Class != row.class || !slices.EqualFunc(o.Replies, row.want, same) {
				t.Errorf("%s: %s %q %.200v", name, o.Class, o.Text, o.Replies)
			}
			if o.Class == wire.ClassReply && !strings.HasPrefix(o.Text, row.text) {
				t.Errorf("%s: %q does not begin with %q", name, o.Text, row.text)
			}
		}
		o, _, err := s.Perform(t.Context(), [][][]byte{words("GET", "key")}, false)
		if err != nil || o.Class != wire.ClassOK || o.Replies != nil {
			t.Errorf("without wanted replies: %+v, %v", o, err)
		}
		if kind := server.Do("TYPE", "key"); kind != "string" {
			t.Error(kind)
		}
	})
}

// Many requests at the same time are all performed once, and never more of them than the adapter takes.
func TestManyAtATime(t *testing.T) {
	each(t, func(t *testing.T, d driver) {
		server := redistest.Shared(t)
		settings := patient(d, server.Address())
		settings.InFlight = 80
		s := connect(t, d, settings)
		value := strings.Repeat("x", 10_000)
		var group sync.WaitGroup
		var failed atomic.Int64
		for range 200 {
			group.Go(func() {
				for range 10 {
					o, _, err := s.Perform(t.Context(), [][][]byte{words("APPEND", "many", "x"), words("SET", "big", value)}, false)
					if err != nil || o.Class != wire.ClassOK {
						failed.Add(1)
						t.Log(o.Class, o.Text, err)
					}
				}
			})
		}
		group.Wait()
		if n := server.Client().StrLen(t.Context(), "many").Val(); failed.Load() > 0 || n != 2000 {
			t.Errorf("%d failed, %d executed", failed.Load(), n)
		}
		await.Until(t, "what the adapter has used", func() error {
			u := s.Usage()
			return await.That(u.CPU > 0 && u.Memory > 1<<20, "%+v", u)
		})
	})
}

func TestLogin(t *testing.T) {
	each(t, func(t *testing.T, d driver) {
		server := redistest.NewServer(t, redistest.Options{Password: "secret", Users: []string{"app on >word ~* &* +@all"}})
		for _, row := range []struct{ user, password string }{{"", "secret"}, {"app", "word"}} {
			settings := patient(d, server.Address())
			settings.Username, settings.Password, settings.Database = row.user, row.password, 3
			s := connect(t, d, settings)
			o := do(t, s, words("ACL", "WHOAMI"))
			if user := map[string]string{"": "default"}[row.user] + row.user; len(o.Replies) != 1 || o.Replies[0].Text != user {
				t.Errorf("%+v is not %s", o, user)
			}
			if o := do(t, s, words("SET", "where", row.user)); o.Class != wire.ClassOK {
				t.Errorf("%+v", o)
			}
			for name, value := range s.Ready.Options {
				if strings.Contains(value, row.password) {
					t.Errorf("the password is in option %s", name)
				}
			}
		}
		if n := server.Info("db3"); !strings.Contains(n, "keys=1") {
			t.Errorf("database 3: %s", n)
		}
		for _, row := range []struct{ user, password string }{{"", ""}, {"app", "wrong"}} {
			s, failed, _ := start(t, d)
			settings := standalone(server.Address())
			settings.Username, settings.Password, settings.InFlight = row.user, row.password, 10
			var refusal *wire.Refusal
			if err := answer(t, s, settings); !errors.As(err, &refusal) || refusal.Kind != wire.Login || refusal.Field != "password" {
				t.Errorf("%+v: %#v, %v", row, err, failed())
			}
		}
	})
}

func TestOptions(t *testing.T) {
	each(t, func(t *testing.T, d driver) {
		server := redistest.Shared(t)
		settings := standalone(server.Address())
		settings.Options = d.option
		s := connect(t, d, settings)
		name, value, _ := strings.Cut(d.shown, "=")
		if s.Ready.Options[name] != value {
			t.Errorf("%v without %s", s.Ready.Options, d.shown)
		}
		s, _, _ = start(t, d)
		for option, wrong := range map[string]any{"no_such_option": int64(1), nameOf(d.option): []any{"x"}} {
			settings := standalone(server.Address())
			settings.Options, settings.InFlight = map[string]any{option: wrong}, 10
			var refusal *wire.Refusal
			if err := s.Connect(t.Context(), settings); !errors.As(err, &refusal) || refusal.Kind != wire.Invalid ||
				!strings.HasPrefix(refusal.Field, "options."+option) || refusal.Message == "" {
				t.Errorf("%s: %#v", option, err)
			}
		}
	})
}

func nameOf(option map[string]any) string {
	for name := range option {
		return name
	}
	return ""
}

// What can pass is said to, and the same adapter connects once it has.
func TestUnreachable(t *testing.T) {
	each(t, func(t *testing.T, d driver) {
		server := redistest.Start(t)
		server.Kill()
		s, failed, _ := start(t, d)
		settings := standalone(server.Address())
		settings.InFlight = 10
		var refusal *wire.Refusal
		for range 2 {
			if err := s.Connect(t.Context(), settings); !errors.As(err, &refusal) || refusal.Kind != wire.Unreachable || refusal.Message == "" {
				t.Fatalf("%#v, %v", err, failed())
			}
		}
		server.Restart()
		await.Until(t, "a connection", func() error { return s.Connect(t.Context(), settings) })
		if o := do(t, s, words("PING")); o.Class != wire.ClassOK {
			t.Errorf("%+v", o)
		}
		clients := server.Client().ClientList(t.Context()).Val()
		if n := strings.Count(clients, "\n"); n > 12 {
			t.Errorf("%d connections are left:\n%s", n, clients)
		}
	})
}

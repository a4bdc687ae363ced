// Package redistest runs real Redis processes for tests: servers, replications, sentinels, clusters; with TLS, client
// certificates and ACL users.
// All listen on free ports of 127.0.0.1 (or of Options.Host), and end with the test that made them. Shared and its like
// lend those of an earlier test.
package redistest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/testing/await"
)

// Options are common to all servers of a fixture. The zero value is plain TCP without a password.
type Options struct {
	TLS      *Authority // servers accept only TLS and require a certificate of this authority
	Password string     // of the default user, who may do everything; servers use it among themselves
	Users    []string   // further ACL users, as in a configuration file: "app on >secret ~* +@all"
	Config   []string   // further lines of the configuration file, such as "maxmemory 1mb"
	Host     string     // the IP that servers listen on; "" = 127.0.0.1
}

// loopback is where servers listen, unless Options.Host says otherwise.
const loopback = "127.0.0.1"

// Server is one process: a server or a sentinel.
type Server struct {
	T       testing.TB
	Port    int
	Dir     string // its own
	options Options
	program string // its path
	cmd     *exec.Cmd
	client  *goredis.Client
	first   string // its state when it was first lent
	prepare func() // called whenever it responds after a start
}

// configure adds lines to the configuration file, for the next start.
func (s *Server) configure(lines ...string) {
	s.T.Helper()
	f, err := os.OpenFile(s.file("redis.conf"), os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(strings.Join(lines, "\n") + "\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		s.T.Fatal(err)
	}
}

// Running reports whether the process was not killed.
func (s *Server) Running() bool {
	return s.cmd != nil
}

// Stop freezes the process by SIGSTOP: its connections stay open without replies.
func (s *Server) Stop() {
	s.Signal(syscall.SIGSTOP)
}

// Cont resumes a frozen process.
func (s *Server) Cont() {
	s.Signal(syscall.SIGCONT)
}

// Signal sends a signal to the process.
func (s *Server) Signal(signal syscall.Signal) {
	s.T.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		s.T.Fatal(err)
	}
}

// Restart starts a killed process again, on the same port with the same files, and waits until it responds.
func (s *Server) Restart() {
	s.T.Helper()
	s.Kill()
	s.run()
	s.WaitUp()
}

// reconnect gives up the client's connections.
func (s *Server) reconnect() {
	if s.client != nil {
		_ = s.client.Close()
		s.client = nil
	}
}

// Do sends one command as the default user and returns its reply. An error ends the test.
func (s *Server) Do(words ...any) any {
	s.T.Helper()
	reply, err := s.Client().Do(context.Background(), words...).Result()
	if err != nil && !errors.Is(err, goredis.Nil) {
		s.T.Fatalf("%v at %s: %v", words, s.Address(), err)
	}
	return reply
}

// Calls is how often the server has carried out a command, such as "get" or "client|pause", by its own count: refused
// ones are not in it.
func (s *Server) Calls(command string) int {
	s.T.Helper()
	info, err := s.info(context.Background(), "commandstats")
	if err != nil {
		s.T.Fatal(err)
	}
	stat, _ := info.Command(command)
	return int(stat.Calls)
}

// given are the ports in use, with what reserves them: a server that was just started does not listen yet, and one that
// is down will be restarted.
var given sync.Map

// silent keeps go-redis from logging every failed dial: in these tests servers are down on purpose.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func init() {
	goredis.SetLogger(silent{})
}

// Start starts a server with lines of its configuration file, such as "maxmemory 1mb", and waits until it responds.
func Start(t testing.TB, config ...string) *Server {
	t.Helper()
	return NewServer(t, Options{Config: config})
}

// NewServer starts a server and waits until it responds.
func NewServer(t testing.TB, o Options) *Server {
	t.Helper()
	s := launch(t, server, o, nil)
	s.WaitUp()
	return s
}

// kind is what a process is.
type kind string

const (
	server   kind = "server"
	sentinel kind = "sentinel"
)

// launch starts a process with a new configuration file, without waiting for it. lines get the port.
func launch(t testing.TB, kind kind, o Options, lines func(port int) []string) *Server {
	t.Helper()
	s := &Server{
		T:       t,
		Port:    FreePort(t),
		Dir:     t.TempDir(),
		options: o,
		program: ReleaseOf(t).program(t, kind),
	}
	config := []string{"bind " + cmp.Or(o.Host, loopback), "protected-mode no", "daemonize no", "dir " + s.Dir}
	if kind == server {
		config = append(config, `save ""`, "appendonly no", "repl-diskless-sync-delay 0", "repl-ping-replica-period 1",
			"enable-debug-command yes")
		if o.Password != "" {
			config = append(config, "masterauth "+o.Password)
		}
	}
	if o.Password != "" {
		config = append(config, "requirepass "+o.Password)
	}
	for _, user := range o.Users {
		config = append(config, "user "+user)
	}
	if o.TLS != nil {
		config = append(config, "port 0", fmt.Sprintf("tls-port %d", s.Port), "tls-replication yes", "tls-auth-clients yes",
			"tls-ca-cert-file "+o.TLS.File("ca.crt"), "tls-cert-file "+o.TLS.File("server.crt"),
			"tls-key-file "+o.TLS.File("server.key"))
	} else {
		config = append(config, fmt.Sprintf("port %d", s.Port))
	}
	if lines != nil {
		config = append(config, lines(s.Port)...)
	}
	config = append(config, o.Config...)
	if isBefore7(s.program) {
		config = slices.DeleteFunc(config, since7)
	}
	err := os.WriteFile(s.file("redis.conf"), []byte(strings.Join(config, "\n")+"\n"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	s.run()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last words of %s at %s:\n%s", s.program, s.Address(), s.lastWords())
		}
		if s.client != nil {
			_ = s.client.Close()
		}
		s.Kill()
		// A snapshot's child outlives its server for a moment and still creates files, until the folder is removed.
		await.Until(t, s.Dir+" is removed", func() error { return os.RemoveAll(s.Dir) })
	})
	return s
}

// run starts the process. What it writes is appended to the file "out".
func (s *Server) run() {
	s.T.Helper()
	out, err := os.OpenFile(s.file("out"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.T.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	s.cmd = exec.Command(s.program, s.file("redis.conf"))
	s.cmd.Stdout, s.cmd.Stderr = out, out
	if err := s.cmd.Start(); err != nil {
		s.T.Fatal(err)
	}
}

func (s *Server) lastWords() string {
	b, _ := os.ReadFile(s.file("out"))
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-15):], []byte("\n")))
}

func (s *Server) file(name string) string {
	return filepath.Join(s.Dir, name)
}

// Waited returns for how long the server's main thread has been kept from running by others since its start: the second
// number of Linux' schedstat.
func (s *Server) Waited() time.Duration {
	s.T.Helper()
	var ran, waited int64
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", s.cmd.Process.Pid))
	if err == nil {
		_, err = fmt.Sscan(string(text), &ran, &waited)
	}
	if err != nil {
		s.T.Fatal(err)
	}
	return time.Duration(waited)
}

// Kill ends the process by SIGKILL and waits for its end. It does nothing if it was killed before.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

// WaitUp waits until the server replies to PING.
func (s *Server) WaitUp() {
	s.T.Helper()
	if err := await.Try(context.Background(), await.Limit, func() error {
		return s.Client().Ping(context.Background()).
			Err()
	}); err != nil {
		s.T.Fatalf("%s at %s did not respond within %s: %v; its last words: %s", s.program, s.Address(), await.Limit, err,
			s.lastWords())
	}
	if s.prepare != nil {
		s.prepare()
	}
}

// reserve keeps a port from the tests of other packages, which run at the same time, until this process ends: a server
// that does not listen yet, or is down, needs it later. An abstract socket, which Linux has, leaves nothing behind.
func reserve(port int) bool {
	if runtime.GOOS != "linux" {
		return true
	}
	l, err := net.Listen("unix", fmt.Sprintf("@redistest-port-%d", port))
	if err == nil {
		given.Store(port, l) // one that nothing refers to would be closed
	}
	return err == nil
}

// FreePort returns a port without a listener, below the kernel's range for outgoing connections.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := 12_000 + rand.IntN(20_000)
		_, taken := given.LoadOrStore(port, true)
		if taken || !reserve(port) {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		_ = l.Close()
		return port
	}
	t.Fatal("no free port on 127.0.0.1 between 12000 and 32000")
	return 0
}

// NeedsIPv6 skips a test where the machine has no ::1, as in a container without IPv6.
func NeedsIPv6(t testing.TB) {
	t.Helper()
	l, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skipf("no server can listen on ::1 here: %v", err)
	}
	_ = l.Close()
}

// Address is host:port.
func (s *Server) Address() string {
	return net.JoinHostPort(cmp.Or(s.options.Host, loopback), strconv.Itoa(s.Port))
}

// Client talks to the server as the default user. It does not retry. It is closed with the test.
func (s *Server) Client() *goredis.Client {
	if s.client == nil {
		s.client = goredis.NewClient(s.clientOptions())
	}
	return s.client
}

func (s *Server) clientOptions() *goredis.Options {
	var secured *tls.Config
	if s.options.TLS != nil {
		secured = s.options.TLS.Client("client")
	}
	return &goredis.Options{
		Addr:                     s.Address(),
		Password:                 s.options.Password,
		TLSConfig:                secured,
		MaxRetries:               -1,
		DialerRetries:            1,
		DisableIdentity:          true,
		ContextTimeoutEnabled:    true,
		DialTimeout:              5 * time.Second,
		ReadTimeout:              10 * time.Second,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// Info reads one field of INFO; "" if it is absent or the server does not respond.
func (s *Server) Info(field string) string {
	info, _ := s.info(context.Background())
	return info[field]
}

func (s *Server) info(ctx context.Context, sections ...string) (redis.Info, error) {
	text, err := s.Client().Info(ctx, sections...).Result()
	return redis.ParseInfo(text), err
}

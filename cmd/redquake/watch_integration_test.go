//go:build integration

package main

import (
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/internal/testing/await"
)

// screen is a command on a pseudo terminal of 80x24, as its user sees it.
type screen struct {
	cmd  *exec.Cmd
	keys *os.File
	emu  *vt.SafeEmulator
	done chan struct{}
}

func (p *place) terminal(env []string, args ...string) *screen {
	p.Helper()
	s := &screen{cmd: exec.Command(os.Args[0], args...), emu: vt.NewSafeEmulator(80, 24), done: make(chan struct{})}
	s.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), asCommand + "=1"}, env...)
	var err error
	if s.keys, err = pty.StartWithSize(s.cmd, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		p.Fatal(err)
	}
	go func() { _, _ = io.Copy(s.keys, s.emu) }() // the terminal's answers to queries
	go func() {
		defer close(s.done)
		_, _ = io.Copy(s.emu, s.keys)
	}()
	p.Cleanup(func() {
		_ = s.keys.Close()
		if s.cmd.ProcessState == nil {
			_ = s.cmd.Process.Kill()
			_ = s.cmd.Wait()
		}
	})
	return s
}

func (p *place) shows(s *screen, text string) {
	p.Helper()
	p.eventually(text+" on the screen", func() bool { return strings.Contains(s.text(), text) }, s)
}

// String is text.
func (s *screen) String() string { return s.text() }

// text is what stands on the screen, without spaces at the ends of lines.
func (s *screen) text() string {
	var b strings.Builder
	for y := range 24 {
		line := ""
		for x := range 80 {
			if cell := s.emu.CellAt(x, y); cell != nil && cell.Content != "" {
				line += cell.Content
			} else {
				line += " "
			}
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}

func (s *screen) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := s.keys.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// code waits for the exit.
func (s *screen) code(t *testing.T) int {
	t.Helper()
	_ = s.cmd.Wait()
	await.Chan(t, "the end of what the command wrote", s.done)
	return s.cmd.ProcessState.ExitCode()
}

// On a terminal there is a page that is redrawn in place; q leaves it, and the results stand below the former content.
func TestWatchOnATerminal(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	begin(t, p.env, "run", "-f", p.file(loadAndKill))
	p.setLoad(v1alpha1.ReasonRunning, false, "")
	p.setFault(v1alpha1.ReasonWaitingForSteady, false, "", false)
	s := p.terminal(p.env, "watch", "load")
	p.shows(s, "redisfault/kill  PodKill  WaitingForSteady")
	p.shows(s, "q or Ctrl-C leaves")
	p.setFault(v1alpha1.ReasonActive, false, "", true)
	p.shows(s, "Injected           redis-0")
	p.eventually("a page that is redrawn", func() bool { // a part of it may stand there already
		text := s.text()
		return !strings.Contains(text, "WaitingForSteady") && strings.HasPrefix(text, "redisloadtest/load  Running")
	}, s)
	s.press(t, "q")
	if code := s.code(t); code != cli.ExitInterrupted || p.load().Spec.Abort {
		t.Errorf("exit code %d, abort %v", code, p.load().Spec.Abort)
	}
	if text := s.text(); !strings.Contains(text, " are served so far") || !strings.Contains(text, "\nkill   PodKill ") ||
		strings.Contains(text, "Ctrl-C leaves") {
		t.Errorf("after the page there is\n%s", text)
	}
}

// Ctrl-C as a key does what it does as a signal. NO_COLOR leaves no colors.
func TestRunOnATerminal(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	s := p.terminal(append(p.env, "NO_COLOR=1"), "run", "-f", p.file(loadAndKill))
	p.shows(s, "Ctrl-C aborts, and reverts what was broken")
	p.setFault(v1alpha1.ReasonActive, false, "", true)
	p.shows(s, "redisfault/kill  PodKill  Active")
	s.press(t, "\x03")
	p.shows(s, "aborting: waiting until everything is reverted")
	p.eventually("spec.abort", func() bool { return p.load().Spec.Abort && p.kill().Spec.Abort })
	for y := range 24 {
		for x := range 80 {
			if cell := s.emu.CellAt(x, y); cell != nil && (cell.Style.Fg != nil || cell.Style.Bg != nil) {
				t.Fatalf("line %d, column %d is colored in spite of NO_COLOR", y, x)
			}
		}
	}
	p.setLoad(v1alpha1.ReasonAborted, true, v1alpha1.VerdictInconclusive)
	p.setFault(v1alpha1.ReasonAborted, true, v1alpha1.VerdictInconclusive, false)
	if code := s.code(t); code != cli.ExitInterrupted {
		t.Errorf("exit code %d", code)
	}
	if text := s.text(); !strings.Contains(text, "Inconclusive: fault "+p.namespace+"/kill") {
		t.Errorf("after the page there is\n%s", text)
	}
}

// gate stands between a client and an API server, and can be shut.
type gate struct {
	server   string
	listener net.Listener
	mu       sync.Mutex
	shut     bool
	open     []net.Conn
}

func newGate(t *testing.T, server string) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{server: server, listener: l}
	t.Cleanup(func() { _ = l.Close(); g.set(true) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			g.pass(c)
		}
	}()
	return g
}

func (g *gate) pass(client net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	server, err := net.Dial("tcp", g.server)
	if err != nil || g.shut {
		_ = client.Close()
		return
	}
	g.open = append(g.open, client, server)
	go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
	go func() { _, _ = io.Copy(client, server); _ = client.Close() }()
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	for _, c := range g.open {
		_ = c.Close()
	}
	g.open = nil
}

// While the API server is away the watch says so; what has changed meanwhile is seen when it is back.
func TestWatchSurvivesTheAPIServer(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	to, err := url.Parse("https://" + strings.TrimPrefix(p.config.Host, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(t, to.Host)
	through := *p.config
	through.Host = "https://" + g.listener.Addr().String()
	begin(t, p.env, "run", "-f", p.file(loadAndKill))
	p.setLoad(v1alpha1.ReasonRunning, false, "")
	p.setFault(v1alpha1.ReasonActive, false, "", true)
	watch := begin(t, []string{"KUBECONFIG=" + p.kubeconfig(&through)}, "watch", "redisfault/kill", "redisloadtest/load")
	p.Cleanup(func() {
		if p.Failed() {
			p.Logf("stdout\n%s\nstderr\n%s", watch.out.String(), watch.err.String())
		}
	})
	p.eventually("the state", func() bool {
		return strings.Contains(watch.out.String(),
			"redisfault/kill  Active")
	}, &watch.out)
	g.set(true)
	p.eventually("the trouble", func() bool {
		return strings.Contains(watch.out.String(),
			"cluster  the API server does not answer: ")
	}, &watch.out)
	p.setLoad(v1alpha1.ReasonSucceeded, true, v1alpha1.VerdictPass)
	p.setFault(v1alpha1.ReasonSucceeded, true, v1alpha1.VerdictPass, false)
	g.set(false)
	if code := watch.code(t); code != 0 || !strings.Contains(watch.out.String(), "Pass: fault "+p.namespace+"/kill") {
		t.Errorf("exit code %d, stdout\n%s\nstderr\n%s", code, watch.out.String(), watch.err.String())
	}
}

//go:build integration

package controllers

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/runs"
)

// asOperator is set in the environment of a test binary that is to be an operator instead.
const asOperator = "REDQUAKE_TEST_AS_OPERATOR"

// orders are what an operator process is told on its standard input: first all, later only where to die. When the input ends, so does the process.
type orders struct {
	Host      string               `json:"host,omitempty"`
	TLS       rest.TLSClientConfig `json:"tls,omitzero"`
	Namespace string               `json:"namespace,omitempty"`
	Home      string               `json:"home,omitempty"`
	DieAt     string               `json:"dieAt"` // "before " or "after " and the name of a call; "" = nowhere
}

// beOperator is an operator in a process of its own, for one namespace, with a failpoint around each call by which a fault changes something.
// It tells the calls on its standard output.
func beOperator() int {
	ctrl.SetLogger(logr.Discard())
	slog.SetDefault(slog.New(slog.DiscardHandler))
	told := json.NewDecoder(os.Stdin)
	var order orders
	if err := told.Decode(&order); err != nil {
		return sayWhy(err)
	}
	points := &failpoints{}
	points.arm(order.DieAt)
	real := topology.NewReal()
	wired := wiring{
		config:    &rest.Config{Host: order.Host, TLSClientConfig: order.TLS, QPS: 500, Burst: 1000},
		namespace: order.Namespace, home: order.Home, sessions: runs.NewRegistry(),
		servers: failingServers{real, points}, faults: points.intercept(),
	}
	manager, err := wired.manager()
	if err != nil {
		return sayWhy(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer stop()
		for {
			var next orders
			if err := told.Decode(&next); err != nil {
				return
			}
			points.arm(next.DieAt)
			fmt.Println(armed)
		}
	}()
	if err := manager.Start(ctx); err != nil {
		return sayWhy(err)
	}
	return 0
}

func sayWhy(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// armed answers an order to die.
const armed = "armed"

// process is an operator process as the test sees it.
type process struct {
	*place
	command *exec.Cmd
	in      io.WriteCloser
	errors  bytes.Buffer
	ended   chan struct{}

	mu     sync.Mutex
	armed  bool
	passed []string // the calls since it was armed, in order
}

// startProcess starts an operator that dies nowhere yet.
func startProcess(p *place) *process {
	p.t.Helper()
	o := &process{place: p, command: exec.Command(os.Args[0]), ended: make(chan struct{})}
	o.command.Env = append(os.Environ(), asOperator+"=yes")
	o.command.Stderr = &o.errors
	in, err := o.command.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := o.command.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	o.in = in
	if err := o.command.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		defer close(o.ended)
		o.listen(out)
		_ = o.command.Wait() // how it ended is asked for by died
	}()
	p.t.Cleanup(o.kill)
	o.tell(orders{Host: p.config.Host, TLS: p.config.TLSClientConfig, Namespace: p.namespace, Home: p.home()})
	return o
}

func (o *process) listen(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		o.mu.Lock()
		if line := lines.Text(); line == armed {
			o.armed, o.passed = true, nil
		} else {
			o.passed = append(o.passed, line)
		}
		o.mu.Unlock()
	}
}

func (o *process) tell(order orders) {
	o.t.Helper()
	if err := json.NewEncoder(o.in).Encode(order); err != nil {
		o.t.Fatalf("the operator does not listen: %v; %s", err, o.lastWords())
	}
}

// arm says where to die and counts the calls anew.
func (o *process) arm(dieAt string) {
	o.t.Helper()
	o.mu.Lock()
	o.armed = false
	o.mu.Unlock()
	o.tell(orders{DieAt: dieAt})
	o.until("the operator is armed", 60*time.Second, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.armed || o.hasEnded()
	}, func() string { return "" })
	if o.hasEnded() {
		o.t.Fatalf("the operator ended: %s", o.lastWords())
	}
}

// calls are those that changed something since it was armed.
func (o *process) calls() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.passed...)
}

func (o *process) hasEnded() bool {
	select {
	case <-o.ended:
		return true
	default:
		return false
	}
}

// died says whether the process ended by SIGKILL; one that ended otherwise fails the test.
func (o *process) died() bool {
	o.t.Helper()
	if !o.hasEnded() {
		return false
	}
	if status, ok := o.command.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		o.t.Fatalf("the operator ended by itself, %s: %s", o.command.ProcessState, o.lastWords())
	}
	return true
}

func (o *process) kill() {
	_ = o.command.Process.Kill()
	<-o.ended
	_ = o.in.Close()
}

// lastWords may be read when the process has ended, or never says anything.
func (o *process) lastWords() string {
	if !o.hasEnded() {
		return "it still runs"
	}
	return strings.TrimSpace(o.errors.String())
}

//go:build integration

package crashtest

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
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/redquake/redquake/controllers"
	"github.com/redquake/redquake/internal/powerhook"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// asOperator is the environment variable that makes the test binary run as an operator.
const asOperator = "REDQUAKE_TEST_AS_OPERATOR"

// Main runs the tests of a package, or an operator, in a process that a test has started and is
// going to kill. It returns the exit code. In the end it calls stops.
func Main(m *testing.M, stops ...func() error) int {
	if os.Getenv(asOperator) != "" {
		return runAsOperator()
	}
	return operatortest.Main(m, stops...)
}

// Orders are read by an operator process from its standard input: first all of them, later only the
// failpoint. The process ends at the end of input.
type Orders struct {
	Host      string               `json:"host,omitempty"`
	TLS       rest.TLSClientConfig `json:"tls,omitzero"`
	Namespace string               `json:"namespace,omitempty"`
	Home      string               `json:"home,omitempty"`
	PowerHook string               `json:"powerHook,omitempty"` // its URL; "" = there is none
	// "before " or "after " and the name of a call; "" = nowhere
	DieAt   string `json:"dieAt"`
	Lease   bool   `json:"lease,omitempty"`   // it acts only while it leads
	Pause   bool   `json:"pause,omitempty"`   // before the first call after the record
	PauseAt string `json:"pauseAt,omitempty"` // before the call of this name
	// after such a pause; the rest is ignored
	Resume bool `json:"resume,omitempty"`
}

// runAsOperator runs an operator for one namespace, with a failpoint around each call by which a
// fault changes something. It prints the calls on standard output.
func runAsOperator() int {
	ctrl.SetLogger(logr.Discard())
	slog.SetDefault(slog.New(slog.DiscardHandler))
	input := json.NewDecoder(os.Stdin)
	var order Orders
	if err := input.Decode(&order); err != nil {
		return exitWithError(err)
	}
	points := &failpoints{resume: make(chan struct{})}
	points.arm(order)
	config := &rest.Config{
		Host:            order.Host,
		TLSClientConfig: order.TLS,
		QPS:             500,
		Burst:           1000,
	}
	process := operatortest.NewProcess(config, order.Namespace, order.Home, interceptor.Funcs{},
		points.intercept())
	process.Servers = failingServers{topology.NewReal(), points}
	if order.PowerHook != "" {
		hook, err := powerhook.New(order.PowerHook, "")
		if err != nil {
			return exitWithError(err)
		}
		process.Power = failingHook{hook, points}
	}
	if order.Lease {
		process.Election = &controllers.Election{
			Namespace:     order.Namespace,
			Name:          operatortest.LeaseName,
			LeaseDuration: 3 * time.Second,
			RenewDeadline: 2 * time.Second,
			RetryPeriod:   500 * time.Millisecond,
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer stop()
		for {
			var next Orders
			if err := input.Decode(&next); err != nil {
				return
			}
			if next.Resume {
				close(points.resume)
				continue
			}
			points.arm(next)
			fmt.Println(armed)
		}
	}()
	if err := process.Run(ctx); err != nil {
		return exitWithError(err)
	}
	return 0
}

func exitWithError(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// armed confirms that the failpoint was set.
const armed = "armed"

// Process is the test's handle of an operator process.
type Process struct {
	*operatortest.Place
	command *exec.Cmd
	in      io.WriteCloser
	errors  bytes.Buffer
	ended   chan struct{}

	mu     sync.Mutex
	armed  bool
	passed []string // the calls since it was armed, in order
}

// Start starts an operator without a failpoint.
func Start(p *operatortest.Place) *Process {
	return StartWith(p, Orders{})
}

// StartWith starts an operator with other orders.
func StartWith(p *operatortest.Place, order Orders) *Process {
	p.T.Helper()
	o := &Process{
		Place:   p,
		command: exec.Command(os.Args[0]),
		ended:   make(chan struct{}),
	}
	o.command.Env = append(os.Environ(), asOperator+"=yes")
	o.command.Stderr = &o.errors
	in, err := o.command.StdinPipe()
	if err != nil {
		p.T.Fatal(err)
	}
	out, err := o.command.StdoutPipe()
	if err != nil {
		p.T.Fatal(err)
	}
	o.in = in
	if err := o.command.Start(); err != nil {
		p.T.Fatal(err)
	}
	go func() {
		defer close(o.ended)
		o.listen(out)
		_ = o.command.Wait() // died checks how it ended
	}()
	p.T.Cleanup(o.Kill)
	order.Host = p.Config.Host
	order.TLS = p.Config.TLSClientConfig
	order.Namespace = p.Namespace
	order.Home = p.Home()
	order.PowerHook = p.PowerHook
	o.Send(order)
	return o
}

func (o *Process) listen(out io.Reader) {
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

// Send sends orders, and does not wait until they are followed.
func (o *Process) Send(order Orders) {
	o.T.Helper()
	if err := json.NewEncoder(o.in).Encode(order); err != nil {
		o.T.Fatalf("the operator does not listen: %v; %s", err, o.errorOutput())
	}
}

// Arm sets the failpoint and resets the list of calls.
func (o *Process) Arm(dieAt string) {
	o.Rearm(Orders{DieAt: dieAt})
}

// Rearm sends orders, resets the list of calls, and waits until the process follows them.
func (o *Process) Rearm(order Orders) {
	o.T.Helper()
	o.mu.Lock()
	o.armed = false
	o.mu.Unlock()
	o.Send(order)
	o.Until("the operator is armed", 60*time.Second, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.armed || o.HasEnded()
	}, func() string { return "" })
	if o.HasEnded() {
		o.T.Fatalf("the operator ended: %s", o.errorOutput())
	}
}

// Calls returns the calls that changed something since it was armed.
func (o *Process) Calls() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.passed...)
}

// Ended is closed when the process has ended.
func (o *Process) Ended() <-chan struct{} { return o.ended }

// HasEnded reports whether the process has ended.
func (o *Process) HasEnded() bool {
	select {
	case <-o.ended:
		return true
	default:
		return false
	}
}

// Died reports whether the process was ended by SIGKILL; any other end fails the test.
func (o *Process) Died() bool {
	o.T.Helper()
	if !o.HasEnded() {
		return false
	}
	if status, ok := o.command.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() ||
		status.Signal() != syscall.SIGKILL {
		o.T.Fatalf("the operator ended by itself, %s: %s", o.command.ProcessState, o.errorOutput())
	}
	return true
}

// Kill ends the process, if it has not ended.
func (o *Process) Kill() {
	_ = o.command.Process.Kill()
	<-o.ended
	_ = o.in.Close()
}

// errorOutput may be read after the process has ended, or if it does not answer.
func (o *Process) errorOutput() string {
	if !o.HasEnded() {
		return "it still runs"
	}
	return strings.TrimSpace(o.errors.String())
}

//go:build integration

package stage

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
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// asOperator is the environment variable that makes the test binary run as an operator.
const asOperator = "REDQUAKE_TEST_AS_OPERATOR"

// Main runs the tests of a package, or an operator, in a process that a test has started and is going to kill. It
// returns the exit code.
func Main(m *testing.M) int {
	if os.Getenv(asOperator) != "" {
		return runAsOperator()
	}
	return operatortest.Main(m, stopMeshServer)
}

// Orders are read by an operator process from its standard input: first all of them, later only the failpoint. The
// process ends at the end of input.
type Orders struct {
	Host      string               `json:"host,omitempty"`
	TLS       rest.TLSClientConfig `json:"tls,omitzero"`
	Namespace string               `json:"namespace,omitempty"`
	Home      string               `json:"home,omitempty"`
	DieAt     string               `json:"dieAt"`             // "before " or "after " and the name of a call; "" = nowhere
	Lease     bool                 `json:"lease,omitempty"`   // it acts only while it leads
	Pause     bool                 `json:"pause,omitempty"`   // before the first call after the record
	PauseAt   string               `json:"pauseAt,omitempty"` // before the call of this name
	Resume    bool                 `json:"resume,omitempty"`  // after such a pause; the rest is ignored
}

// runAsOperator runs an operator for one namespace, with a failpoint around each call by which a fault changes
// something. It prints the calls on standard output.
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
	config := &rest.Config{Host: order.Host, TLSClientConfig: order.TLS, QPS: 500, Burst: 1000}
	process := operatortest.NewProcess(config, order.Namespace, order.Home, interceptor.Funcs{}, points.intercept())
	process.Servers = failingServers{topology.NewReal(), points}
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

// process is the test's handle of an operator process.
type process struct {
	*operatortest.Place
	command *exec.Cmd
	in      io.WriteCloser
	errors  bytes.Buffer
	ended   chan struct{}

	mu     sync.Mutex
	armed  bool
	passed []string // the calls since it was armed, in order
}

// StartProcess starts an operator without a failpoint.
func StartProcess(p *operatortest.Place) *process { return startProcessWith(p, Orders{}) }

func startProcessWith(p *operatortest.Place, order Orders) *process {
	p.T.Helper()
	o := &process{Place: p, command: exec.Command(os.Args[0]), ended: make(chan struct{})}
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
	order.Host, order.TLS, order.Namespace, order.Home = p.Config.Host, p.Config.TLSClientConfig, p.Namespace, p.Home()
	o.Send(order)
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

func (o *process) Send(order Orders) {
	o.T.Helper()
	if err := json.NewEncoder(o.in).Encode(order); err != nil {
		o.T.Fatalf("the operator does not listen: %v; %s", err, o.errorOutput())
	}
}

// Arm sets the failpoint and resets the list of calls.
func (o *process) Arm(dieAt string) { o.Rearm(Orders{DieAt: dieAt}) }

func (o *process) Rearm(order Orders) {
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
func (o *process) Calls() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.passed...)
}

func (o *process) HasEnded() bool {
	select {
	case <-o.ended:
		return true
	default:
		return false
	}
}

// Died reports whether the process was ended by SIGKILL; any other end fails the test.
func (o *process) Died() bool {
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

func (o *process) Kill() {
	_ = o.command.Process.Kill()
	<-o.ended
	_ = o.in.Close()
}

// errorOutput may be read after the process has ended, or if it does not answer.
func (o *process) errorOutput() string {
	if !o.HasEnded() {
		return "it still runs"
	}
	return strings.TrimSpace(o.errors.String())
}

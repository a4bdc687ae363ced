package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// managerHome is the manager's namespace.
const managerHome = "redquake-system"

// managerMemory is GOMEMLIMIT as config/manager/manager.yaml sets it.
const managerMemory = "512MiB"

// reconcileWithin is how long a manager may take to reconcile everything before the benchmark ends
// without a result.
const reconcileWithin = 5 * time.Minute

// managerProcess is a manager as the Deployment runs it: with leader election, metrics and a memory
// limit.
type managerProcess struct {
	options *scaleOptions
	cmd     *exec.Cmd
	metrics string // URL
	began   time.Time
	log     string
	ended   chan struct{}
	stop    func()
}

func startManager(
	ctx context.Context, options *scaleOptions, kubeconfig, folder string,
) (*managerProcess, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, err
	}
	m := &managerProcess{
		options: options,
		metrics: "http://" + address + "/metrics",
		began:   time.Now(),
		ended:   make(chan struct{}),
	}
	m.log = filepath.Join(folder, fmt.Sprintf("manager-%d.log", m.began.UnixNano()))
	log, err := os.Create(m.log)
	if err != nil {
		return nil, err
	}
	m.cmd = exec.CommandContext(ctx, options.manager, "--agent-image=redquake:bench",
		"--namespace="+managerHome, "--leader-elect",
		"--health-probe-bind-address=0", "--metrics-secure=false", "--metrics-bind-address="+address)
	m.cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "GOMEMLIMIT="+managerMemory)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = m.cmd.Wait() // its log says why
		_ = log.Close()
		close(m.ended)
	}()
	m.stop = sync.OnceFunc(func() {
		_ = m.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-m.ended:
		case <-time.After(30 * time.Second):
			_ = m.cmd.Process.Kill()
			<-m.ended
		}
	})
	return m, nil
}

// awaitReconciled returns how long the manager took to reconcile every object at least once, and to
// have nothing left in its queues.
func (m *managerProcess) awaitReconciled(ctx context.Context) (time.Duration, error) {
	for time.Since(m.began) < reconcileWithin {
		select {
		case <-m.ended:
			return 0, fmt.Errorf("the manager has ended: %s", m.lastLines())
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(500 * time.Millisecond): // a scrape describes every object
		}
		if values, err := m.read(ctx); err == nil && m.reconciled(values) {
			return time.Since(m.began), nil
		}
	}
	values, _ := m.read(ctx)
	return 0, fmt.Errorf("the manager has not reconciled everything after %s: %v; %s", reconcileWithin,
		values, m.lastLines())
}

// reconciled reports whether every object was reconciled. A controller adds each object to its
// queue when it starts.
func (m *managerProcess) reconciled(values map[string]float64) bool {
	for controller, objects := range map[string]int{
		"redisloadtest":     m.options.tests,
		"redisfault":        m.options.faults,
		"redisfault-ending": m.options.faults,
	} {
		if values["total "+controller] < float64(objects) || values["active "+controller] > 0 ||
			values["queued "+controller] > 0 {
			return false
		}
	}
	return true
}

// read reads the numbers of reconciles, of active workers and of queued objects by controller.
func (m *managerProcess) read(ctx context.Context) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, m.metrics, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	values := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		for prefix, name := range map[string]string{
			"controller_runtime_reconcile_total{": "total ",
			"controller_runtime_active_workers{":  "active ",
			"workqueue_depth{":                    "queued ",
		} {
			labels, found := strings.CutPrefix(lines.Text(), prefix)
			if !found {
				continue
			}
			_, rest, _ := strings.Cut(labels, `controller="`)
			controller, _, _ := strings.Cut(rest, `"`)
			value, err := strconv.ParseFloat(labels[strings.LastIndexByte(labels, ' ')+1:], 64)
			if err != nil {
				return nil, err
			}
			values[name+controller] += value
		}
	}
	return values, lines.Err()
}

// memory reads a size in /proc/PID/status, in MiB.
func (m *managerProcess) memory(name string) float64 {
	return memoryMiB(m.cmd.Process.Pid, name)
}

// cpu is the user and system time of the process so far.
func (m *managerProcess) cpu() time.Duration {
	p, err := readProcess(m.cmd.Process.Pid)
	if err != nil {
		return 0
	}
	return p.cpu
}

// lastLines is the end of the manager's log.
func (m *managerProcess) lastLines() string {
	text, err := os.ReadFile(m.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

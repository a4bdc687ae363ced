package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/redquake/redquake/internal/testing/cluster"
)

const scaleFile = "build/bench-scale.json"

// figure is a line of build/bench-scale.json. The fields are a contract.
type figure struct {
	Figure string   `json:"figure"`
	Value  float64  `json:"value"`
	Unit   string   `json:"unit"`
	Limit  *float64 `json:"limit"` // null = there is none
}

// The figures with a limit.
const (
	figurePeak    = "manager's memory, the most"
	figureIdle    = "requests while idle"
	figureStarted = "from the start to all objects reconciled"
)

// scaleOptions are the flags of `bench scale`.
type scaleOptions struct {
	manager                    string
	tests, faults, pods, nodes int
	acting                     int
	podBytes                   int
	idle                       time.Duration
	report                     bool
}

func (o *scaleOptions) parse(args []string) error {
	flags := flag.NewFlagSet("bench scale", flag.ContinueOnError)
	flags.StringVar(&o.manager, "manager", "bin/manager", "the program to measure")
	flags.IntVar(&o.tests, "tests", 1000, "RedisLoadTests")
	flags.IntVar(&o.faults, "faults", 1000, "RedisFaults")
	flags.IntVar(&o.acting, "acting", 20, "faults that act, in a second part")
	flags.IntVar(&o.pods, "pods", 30000, "foreign pods")
	flags.IntVar(&o.nodes, "nodes", 5000, "nodes")
	flags.IntVar(&o.podBytes, "pod-bytes", 10_000, "approximate size of a pod as JSON")
	flags.DurationVar(&o.idle, "idle", time.Minute,
		"time in which requests are counted once nothing is left to do")
	flags.BoolVar(&o.report, "report", true, "write the results and the docs")
	return flags.Parse(args)
}

// runScale measures a manager as a process of its own against a real API server that holds a large
// cluster without kubelets and controllers.
func runScale(ctx context.Context, args []string) error {
	var options scaleOptions
	if err := options.parse(args); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "bench-scale")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	ctrl.SetLogger(logr.Discard())
	where := describeMachine()
	figures, err := measureScale(ctx, folder, &options)
	if err != nil {
		return err
	}
	printFigures(figures)
	missed := meetsLimits(figures)
	if !options.report {
		return missed
	}
	return errors.Join(missed, writeJSON(scaleFile, figures), writeJSON(scaleMachineFile, where),
		writeDocs())
}

func measureScale(ctx context.Context, folder string, options *scaleOptions) ([]figure, error) {
	audit, err := newAudit(folder)
	if err != nil {
		return nil, err
	}
	env, err := cluster.StartControlPlaneWith(audit.flags())
	if err != nil {
		return nil, err
	}
	defer func() { _ = env.Stop() }() // its files are removed, too
	big := &bigCluster{options: options, config: unthrottled(env.Config)}
	if err := big.fill(ctx); err != nil {
		return nil, err
	}
	kubeconfig, err := managerAccess(ctx, env, big.config, folder)
	if err != nil {
		return nil, err
	}
	// A first manager takes over the new objects, as one that ran before would have.
	first, err := startManager(ctx, options, kubeconfig, folder)
	if err != nil {
		return nil, err
	}
	defer first.stop()
	taken, err := first.awaitReconciled(ctx)
	if err != nil {
		return nil, err
	}
	fmt.Printf("the new objects were reconciled after %.1f s\n", taken.Seconds())
	if err := pause(ctx, settleTime); err != nil {
		return nil, err
	}
	first.stop()
	idle, err := measureManager(ctx, options, kubeconfig, folder, audit, taken)
	if err != nil {
		return nil, err
	}
	acting, err := big.measureActing(ctx, kubeconfig, folder, audit, idle.perSecond)
	return append(idle.figures, acting...), err
}

// settleTime is how long the writes of a start may echo before the manager counts as idle.
const settleTime = 15 * time.Second

// idleManager is what was measured while no fault acted.
type idleManager struct {
	figures   []figure
	perSecond float64 // requests
}

// measureManager measures a manager that starts where another has ended.
func measureManager(
	ctx context.Context, options *scaleOptions, kubeconfig, folder string, audit *audit,
	taken time.Duration,
) (*idleManager, error) {
	began := time.Now()
	m, err := startManager(ctx, options, kubeconfig, folder)
	if err != nil {
		return nil, err
	}
	defer m.stop()
	started, err := m.awaitReconciled(ctx)
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, settleTime); err != nil {
		return nil, err
	}
	idleFrom := time.Now()
	cpu := m.cpu()
	if err := pause(ctx, options.idle); err != nil {
		return nil, err
	}
	idleTo := time.Now()
	cores := (m.cpu() - cpu).Seconds() / idleTo.Sub(idleFrom).Seconds()
	peak, resident := m.memory("VmHWM"), m.memory("VmRSS")
	m.stop() // the API server writes the log of a request when it has ended
	start, err := audit.count(began, idleFrom)
	if err != nil {
		return nil, err
	}
	idle, err := audit.count(idleFrom, idleTo)
	if err != nil {
		return nil, err
	}
	start.print("requests of the start")
	idle.print("requests while idle")
	perSecond := float64(idle.total()) / idleTo.Sub(idleFrom).Seconds()
	return &idleManager{[]figure{
		{figurePeak, peak, "MiB", new(200.0)},
		{"manager's memory at the end", resident, "MiB", nil},
		{figureIdle, perSecond, "1/s", new(1.0)},
		{"CPU while idle", cores, "cores", nil},
		{figureStarted, started.Seconds(), "s", new(15.0)},
		{"the same with objects that no manager has seen before", taken.Seconds(), "s", nil},
		{"requests of the start", float64(start.total()), "count", nil},
		{"load tests", float64(options.tests), "count", nil},
		{"faults", float64(options.faults), "count", nil},
		{"foreign pods", float64(options.pods), "count", nil},
		{"nodes", float64(options.nodes), "count", nil},
	}, perSecond}, nil
}

func printFigures(figures []figure) {
	for _, f := range figures {
		limit := ""
		if f.Limit != nil {
			limit = fmt.Sprintf("   (limit %g)", *f.Limit)
		}
		fmt.Printf("%-56s %10.2f %-6s%s\n", f.Figure, f.Value, f.Unit, limit)
	}
}

// meetsLimits returns an error that names the figures beyond their limits.
func meetsLimits(figures []figure) error {
	var missed error
	for _, f := range figures {
		if f.Limit != nil && f.Value >= *f.Limit {
			missed = errors.Join(missed,
				fmt.Errorf("%s: %.2f %s, which is not below %g", f.Figure, f.Value, f.Unit, *f.Limit))
		}
	}
	return missed
}

// unthrottled is a configuration for a client that fills a cluster.
func unthrottled(config *rest.Config) *rest.Config {
	c := rest.CopyConfig(config)
	c.QPS, c.Burst = -1, -1
	return c
}

// managerAccess gives a user the rights of the manager and returns the path of its kubeconfig.
func managerAccess(
	ctx context.Context, env *envtest.Environment, config *rest.Config, folder string,
) (string, error) {
	user, err := env.AddUser(envtest.User{Name: managerUser}, nil)
	if err != nil {
		return "", fmt.Errorf("add a user: %w", err)
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "kubeconfig")
	return path, errors.Join(os.WriteFile(path, kubeconfig, 0o600), grant(ctx, config))
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime/pprof"
	"sync"
	"syscall"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/record/merged"
)

const collectFile = "build/bench-collect.json"

// collected is the cost of collecting.
type collected struct {
	Machine           machine `json:"machine"`
	Agents            int     `json:"agents"`
	Operations        int     `json:"operations"`
	IntervalSeconds   float64 `json:"intervalSeconds"`
	RequestsPerSecond float64 `json:"requestsPerSecond"` // in the merged intervals
	MeasuredSeconds   float64 `json:"measuredSeconds"`   // after the start and the first warm-up
	Intervals         int64   `json:"intervals"`         // merged meanwhile
	// CPU time of the collecting process / measuredSeconds
	Cores           float64 `json:"cores"`
	CPUMicros       float64 `json:"cpuMicrosPerMerged"` // per interval
	Checkpoints     int     `json:"checkpoints"`        // stored meanwhile
	CheckpointBytes int     `json:"checkpointBytes"`    // of the last
	// how far the slowest pod's record was behind the clock at the end
	LagSeconds float64 `json:"lagSeconds"`
	// of the collecting process before: handshakes with all agents, clocks, the start
	BeginCPUSeconds float64 `json:"beginCPUSeconds"`
	ResidentMiB     float64 `json:"residentMiB"` // of the collecting process at the end
}

// The goals of the manager with 1,000 load pods of 10 operations.
const (
	coresGoal    = 0.3
	residentGoal = 400 // MiB
	managerMiB   = 40  // what the manager has beside the collection: caches of its clients
)

// meetsGoals returns an error if a figure of the collecting process is beyond the goals.
func meetsGoals(when string, cores, residentMiB float64) error {
	if cores > coresGoal || residentMiB+managerMiB > residentGoal {
		return fmt.Errorf(
			"%s: %.2f cores and %.0f MiB of memory, the goals are at most %g and, with %d MiB for the rest of the manager, %d MiB",
			when, cores, residentMiB, coresGoal, managerMiB, residentGoal)
	}
	return nil
}

// memoryStore keeps the checkpoint in memory: a ConfigMap's write is the API server's cost.
type memoryStore struct {
	mu    sync.Mutex
	data  []byte
	saves int
}

func (m *memoryStore) Load(context.Context) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.data, nil
}

func (m *memoryStore) Save(_ context.Context, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.data = data
	m.saves++
	return nil
}

// collectOptions are the flags of `bench collect`.
type collectOptions struct {
	agents, perInterval  int
	ops                  int
	step, warmUp, length time.Duration
	day                  time.Duration
	dayPods              int
	daySpeed             float64
	allStep              time.Duration
	allSpeed             float64
	profile              string
}

func runCollect(ctx context.Context, args []string) error {
	var options collectOptions
	if err := options.parse(args); err != nil {
		return err
	}
	if options.length > 0 {
		if err := collectNow(ctx, options); err != nil {
			return err
		}
	}
	if options.day > 0 {
		if err := runDay(ctx, options); err != nil {
			return err
		}
	}
	return writeDocs()
}

// collectNow collects from all agents in real time.
func collectNow(ctx context.Context, options collectOptions) error {
	credentials, err := agent.NewCredentials()
	if err != nil {
		return err
	}
	o := order{
		Run:         "bench",
		Agents:      options.agents,
		Step:        options.step,
		PerInterval: options.perInterval,
		Ops:         options.ops,
		Credentials: credentials,
	}
	pods, _, stop, err := startAgents(ctx, o)
	if err != nil {
		return err
	}
	defer stop()
	store := &memoryStore{}
	session, err := collect.Open(collect.Config{
		Run:         o.Run,
		Step:        o.Step,
		Ops:         opNames(o.Ops),
		Pods:        o.Agents,
		Credentials: credentials,
		Store:       store,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{
			Level: slog.LevelWarn,
		})),
	})
	if err != nil {
		return err
	}
	defer session.Close()
	session.SetPods(pods)
	start, err := startAll(ctx, session, o.Agents)
	if err != nil {
		return err
	}
	if err := watch(ctx, session, time.Until(start)+options.warmUp); err != nil {
		return err
	}
	stopProfile, err := startProfile(options.profile)
	if err != nil {
		return err
	}
	defer stopProfile()
	result, wrong, err := measureCollecting(ctx, session, store, start, options)
	if err != nil {
		return err
	}
	fmt.Printf(
		"%d agents every %v, %.0f requests/s in all: %.3f cores, %.1f us per interval (%d intervals in %.0f s), %d checkpoints\n",
		result.Agents, options.step, result.RequestsPerSecond, result.Cores, result.CPUMicros,
		result.Intervals, result.MeasuredSeconds, result.Checkpoints)
	return errors.Join(wrong, writeJSON(collectFile, result),
		meetsGoals("in real time", result.Cores, result.ResidentMiB))
}

func (o *collectOptions) parse(args []string) error {
	flags := flag.NewFlagSet("bench collect", flag.ContinueOnError)
	flags.IntVar(&o.agents, "agents", 1000, "simulated load pods")
	flags.DurationVar(&o.step, "interval", 100*time.Millisecond, "step of their recording")
	flags.IntVar(&o.perInterval, "requests", 100, "requests in an agent's interval, on average")
	flags.DurationVar(&o.warmUp, "warm-up", 10*time.Second,
		"time after the start that is not measured")
	flags.DurationVar(&o.length, "duration", time.Minute, "time that is measured; 0 = none")
	flags.IntVar(&o.ops, "operations", 10, "operations of the load")
	flags.DurationVar(&o.day, "long", 24*time.Hour, "length of the accelerated runs; 0 = none")
	flags.IntVar(&o.dayPods, "long-pods", 6, "simulated pods of the first accelerated run")
	flags.Float64Var(&o.daySpeed, "long-speed", 240,
		"how much faster than in real time it is, at most")
	flags.DurationVar(&o.allStep, "long-interval", 30*time.Second,
		"step of the second one, with all load pods")
	flags.Float64Var(&o.allSpeed, "long-interval-speed", 360,
		"how much faster than in real time that is, at most")
	flags.StringVar(&o.profile, "cpuprofile", "", "file for a CPU profile of the measured time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.day > 0 && o.day < 2*outageAt {
		return fmt.Errorf("--long: at least %v, as its outage begins %v before the end", 2*outageAt,
			outageAt)
	}
	return nil
}

// startProfile writes a CPU profile to the file until the function that it returns is called; "" =
// none.
func startProfile(file string) (stop func(), err error) {
	if file == "" {
		return func() {}, nil
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		f.Close()
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		f.Close()
	}, nil
}

// measureCollecting measures for options.length; wrong describes what is inconsistent in the merged
// record.
func measureCollecting(
	ctx context.Context, session *collect.Session, store *memoryStore, start time.Time,
	options collectOptions,
) (result collected, wrong, err error) {
	result = collected{
		Machine:         describeMachine(),
		Agents:          options.agents,
		Operations:      options.ops,
		IntervalSeconds: options.step.Seconds(),
	}
	cpu, before, began := cpuTime(), mergedIntervals(session), time.Now()
	saves, _ := store.state()
	result.BeginCPUSeconds = cpu.Seconds()
	if err := watch(ctx, session, options.length); err != nil {
		return collected{}, nil, err
	}
	elapsed := time.Since(began)
	result.MeasuredSeconds = elapsed.Seconds()
	result.Cores = (cpuTime() - cpu).Seconds() / elapsed.Seconds()
	result.ResidentMiB = memoryMiB(os.Getpid(), "VmRSS")
	result.Intervals = mergedIntervals(session) - before
	result.CPUMicros = result.Cores * elapsed.Seconds() * 1e6 / float64(result.Intervals)
	result.Checkpoints, result.CheckpointBytes = store.state()
	result.Checkpoints -= saves
	session.Read(func(series *merged.Series) {
		result.LagSeconds = (time.Since(start) - series.End()).Seconds()
		result.RequestsPerSecond, wrong = exact(series, options.perInterval)
	})
	return result, wrong, nil
}

func (m *memoryStore) state() (saves, size int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.saves, len(m.data)
}

// startAgents starts the agents' process and returns the agents' addresses, a function that lets
// them deliver up to an interval, if they are paced, and one that ends it.
func startAgents(
	ctx context.Context, o order,
) (pods []collect.Pod, pace func(index int64) error, stop func(), err error) {
	own, err := os.Executable()
	if err != nil {
		return nil, nil, nil, err
	}
	cmd := exec.CommandContext(ctx, own, agentsCommand)
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, nil, err
	}
	stop = func() {
		input.Close()
		// an error means that it has already ended
		killer := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // however it ended
		killer.Stop()
	}
	orders := json.NewEncoder(input)
	var addresses []string
	if err := errors.Join(orders.Encode(o), json.NewDecoder(output).Decode(&addresses)); err != nil {
		stop()
		return nil, nil, nil, fmt.Errorf("agents: %w", err)
	}
	pods = make([]collect.Pod, len(addresses))
	for i, address := range addresses {
		pods[i] = collect.Pod{
			Index:   i,
			Name:    fmt.Sprintf("agent-%d", i),
			Address: address,
		}
	}
	return pods, func(index int64) error { return orders.Encode(index) }, stop, nil
}

// startAll waits until all agents are ready and starts them.
func startAll(ctx context.Context, session *collect.Session, agents int) (time.Time, error) {
	for end := time.Now().Add(2 * time.Minute); ; {
		status := session.Status()
		if status.AllReady {
			break
		}
		if time.Now().After(end) {
			return time.Time{}, fmt.Errorf("only %d of %d agents are ready", status.Ready, agents)
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return time.Time{}, err
		}
	}
	at := time.Now().Add(5 * time.Second)
	return at, session.Start(ctx, at)
}

// watch reads the session once a second, as the controller does, for the given time.
func watch(ctx context.Context, session *collect.Session, length time.Duration) error {
	for end := time.Now().Add(length); ; {
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		if err := pause(ctx, min(left, time.Second)); err != nil {
			return err
		}
		for _, pod := range session.Status().Pods {
			if pod.Problem != "" {
				return fmt.Errorf("agent %d: %s", pod.Index, pod.ProblemText)
			}
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// mergedIntervals is how many intervals of pods the series holds.
func mergedIntervals(session *collect.Session) int64 {
	var n int64
	session.Read(func(series *merged.Series) {
		for pod := range series.Pods {
			n += series.Next(pod)
		}
	})
	return n
}

// exact compares the merged record with what the agents delivered, and returns its requests per
// second.
func exact(series *merged.Series, perInterval int) (float64, error) {
	made := madeUp(order{
		PerInterval: perInterval,
		Ops:         len(series.Ops),
		Step:        series.PodStep,
	})
	var want, got, cells uint64
	for pod := range series.Pods {
		for index := range series.Next(pod) {
			for _, op := range made[variant(pod, index)].Ops {
				want += op.OK
			}
		}
	}
	for i := range series.Len() {
		for _, op := range series.At(i).Ops {
			got += op.OK
			cells += op.Latency.Count()
		}
	}
	if got != want || cells != want {
		return 0, fmt.Errorf(
			"the merged record has %d requests and %d latencies; the agents delivered %d", got, cells, want)
	}
	return float64(got) / (float64(series.Len()) * series.Step.Seconds()), nil
}

// cpuTime is the user and system time of this process so far.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // it has no way to fail with these arguments
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

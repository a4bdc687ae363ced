package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/record"
)

const dayFile = "build/bench-day.json"

const (
	// outageAt is how long before the end of the long run its outage begins, which lasts outageFor.
	outageAt, outageFor = time.Hour, time.Second
	// checkpointEvery is how often a session stores a checkpoint.
	checkpointEvery = collect.DefaultCheckpointEvery
	// dayCheckpoints is how often it does in the accelerated run, in real time: the cost of one is measured apart.
	dayCheckpoints = 2 * time.Second
)

// day is the cost of collecting a long run.
type day struct {
	Machine    machine `json:"machine"`
	Hours      float64 `json:"hours"`
	Pods       int     `json:"pods"` // for which the CPU is computed
	Simulated  int     `json:"simulatedPods"`
	Speed      float64 `json:"speed"`
	Operations int     `json:"operations"`
	Samples    []hour  `json:"samples"`
	TPSDip     float64 `json:"tpsDip"`
	Recovery   float64 `json:"recoverySeconds"`
	Doubts     string  `json:"doubts"`
}

// hour is the state of the collecting process at an instant of the run.
type hour struct {
	Hours           float64 `json:"hours"`
	RecordMiB       float64 `json:"recordMiB"` // by Series.Memory
	HeapMiB         float64 `json:"heapMiB"`   // in use after a garbage collection
	ResidentMiB     float64 `json:"residentMiB"`
	Step            float64 `json:"stepSeconds"`
	CPUMicros       float64 `json:"cpuMicrosPerMerged"` // of pulling and merging an interval, since the last sample
	CheckpointMilli float64 `json:"checkpointMilliseconds"`
	CheckpointKiB   float64 `json:"checkpointKiB"`
	Cores           float64 `json:"cores"` // of the run with all pods, in its own time
}

// runDay collects an accelerated run: pods simulate their intervals faster than in real time. A record's size hardly depends on their number, so that
// few stand for all; the CPU time is that of pulling and merging one interval, times the intervals of all pods, and that of checkpoints.
func runDay(ctx context.Context, options collectOptions) error {
	credentials, err := agent.NewCredentials()
	if err != nil {
		return err
	}
	o := order{
		Run: "day", Agents: options.dayPods, Step: options.step, PerInterval: options.perInterval, Ops: options.ops, Credentials: credentials,
		Speed: options.daySpeed, Length: options.day, DownFrom: options.day - outageAt, DownTo: options.day - outageAt + outageFor,
	}
	pods, stop, err := startAgents(ctx, o)
	if err != nil {
		return err
	}
	defer stop()
	store := &memoryStore{}
	session, err := collect.Open(collect.Config{
		Run: o.Run, Step: o.Step, Ops: opNames(o.Ops), Pods: o.Agents, Credentials: credentials, Store: store, CheckpointEvery: dayCheckpoints,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	defer session.Close()
	session.SetPods(pods)
	if _, err := startAll(ctx, session, o.Agents); err != nil {
		return err
	}
	session.Keep("outage", o.DownFrom-2*time.Minute, o.DownTo+3*time.Minute)
	result := day{
		Machine: describeMachine(), Hours: options.day.Hours(), Pods: options.agents, Simulated: o.Agents, Speed: o.Speed, Operations: o.Ops,
	}
	if result.Samples, err = sampleDay(ctx, session, store, options); err != nil {
		return err
	}
	session.Read(func(series *record.Series) { err = result.analyze(series, o.DownFrom) })
	data, _ := store.Load(ctx) // does not fail
	stored, wrong := record.DecodeSeries(data)
	if wrong == nil {
		wrong = result.analyze(stored, o.DownFrom)
	}
	fmt.Print(result.table())
	err = errors.Join(err, wrong, writeJSON(dayFile, result))
	for _, h := range result.Samples {
		err = errors.Join(err, meetsGoals(fmt.Sprintf("%.1f h after the start", h.Hours), h.Cores, h.ResidentMiB))
	}
	return err
}

// analyze sets the figures of the outage from the record, or from that in the last checkpoint. It returns an error if they are not those of a short run.
func (d *day) analyze(series *record.Series, at time.Duration) error {
	m := impact.Analyze(series, impact.Fault{At: at, Deadline: 2 * time.Minute}, impact.Options{})
	d.TPSDip, d.Recovery, d.Doubts = m.Dip, m.RecoveryTime.Value.Seconds(), fmt.Sprint(m.Doubts)
	if m.Dip != 1 || len(m.Doubts) > 0 {
		return fmt.Errorf("an outage of %v: dip %.3f, doubts %v", outageFor, m.Dip, m.Doubts)
	}
	return nil
}

// sampleDay follows the run to its end and takes a sample at its beginning and then every twelfth.
func sampleDay(ctx context.Context, session *collect.Session, store collect.Store, options collectOptions) ([]hour, error) {
	var samples []hour
	every := options.day / 12
	due := min(every, 10*time.Minute)
	cpu, merged := cpuTime(), mergedIntervals(session)
	deadline := time.Now().Add(time.Duration(float64(options.day)/options.daySpeed)*3 + time.Minute)
	for {
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
		if time.Now().After(deadline) {
			return nil, errors.New("the operator does not keep up with the accelerated run")
		}
		finished := session.Finished()
		now := mergedIntervals(session)
		at := time.Duration(now/int64(options.dayPods)) * options.step
		if at < due && !finished {
			continue
		}
		h := hour{Hours: at.Hours(), CPUMicros: float64((cpuTime() - cpu).Microseconds()) / float64(max(1, now-merged))}
		h.measure(session, store, options)
		samples = append(samples, h)
		cpu, merged = cpuTime(), mergedIntervals(session)
		if finished {
			return samples, nil
		}
		due = (at/every + 1) * every
	}
}

// measure sets what is read from the process and the record.
func (h *hour) measure(session *collect.Session, store collect.Store, options collectOptions) {
	session.Read(func(series *record.Series) {
		h.RecordMiB, h.Step = float64(series.Memory())/(1<<20), series.Step.Seconds()
	})
	h.ResidentMiB = residentMiB()
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	h.HeapMiB = float64(mem.HeapAlloc) / (1 << 20)
	perSecond := float64(options.agents) / options.step.Seconds()
	h.Cores = h.CPUMicros * perSecond / 1e6
	data, _ := store.Load(context.Background()) // does not fail
	series, err := record.DecodeSeries(data)
	if err != nil {
		return // nothing was stored yet
	}
	cpu := cpuTime()
	if _, err := series.Encode(collect.DefaultCheckpointLimit); err == nil {
		h.CheckpointKiB, h.CheckpointMilli = float64(len(data))/(1<<10), (cpuTime()-cpu).Seconds()*1000
	}
	h.Cores += h.CheckpointMilli / 1e3 / checkpointEvery.Seconds()
}

// residentMiB is the resident memory of this process; 0 where it cannot be read.
func residentMiB() float64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseFloat(fields[1], 64)
	if err != nil {
		return 0
	}
	return pages * float64(os.Getpagesize()) / (1 << 20)
}

func (d *day) table() string {
	var b strings.Builder
	b.WriteString("| hours | record MiB | heap MiB | resident MiB | counts per s | us per interval | checkpoint | cores |\n" +
		"| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, h := range d.Samples {
		fmt.Fprintf(&b, "| %.1f | %.0f | %.0f | %.0f | %g | %.1f | %.0f KiB, %.0f ms | %.2f |\n",
			h.Hours, h.RecordMiB, h.HeapMiB, h.ResidentMiB, h.Step, h.CPUMicros, h.CheckpointKiB, h.CheckpointMilli, h.Cores)
	}
	fmt.Fprintf(&b, "\nThe outage of 1 s an hour before the end, from the last checkpoint: tpsDip %.2f, recoveryTime %.1f s, doubts %s.\n", d.TPSDip, d.Recovery, d.Doubts)
	return b.String()
}

func daySection() (string, error) {
	var d day
	ok, err := readJSON(dayFile, &d)
	if !ok || err != nil {
		return "", err
	}
	return d.Machine.describe() + fmt.Sprintf("%d simulated pods of %d operations, %g times as fast as in real time; cores are those of %d pods.\n\n",
		d.Simulated, d.Operations, d.Speed, d.Pods) + d.table(), nil
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/collect"
	"github.com/redquake/redquake/internal/record/merged"
)

const dayFile = "build/bench-day.json"

const (
	// outageAt is how long before the end of the long run its outage begins, which lasts outageFor.
	outageAt, outageFor = time.Hour, time.Second
	// checkpointEvery is how often a session stores a checkpoint.
	checkpointEvery = collect.DefaultCheckpointEvery
	// dayCheckpoints is how often it does in the accelerated run, in real time: the cost of one is
	// measured apart.
	dayCheckpoints = 2 * time.Second
	// perPull is how many intervals of 100 ms a pull from one of 1,000 pods returns in real time: one
	// every 2 s.
	perPull = 20
	// heapFactor is how much of the heap the live part takes before a garbage collection, with Go's
	// default GOGC=100.
	heapFactor = 2
)

// day is the cost of collecting a long run: from few pods at the interval of the run, and from all
// of them at a longer one.
type day struct {
	Machine    machine `json:"machine"`
	Hours      float64 `json:"hours"`
	Operations int     `json:"operations"`
	Few        dayRun  `json:"few"`
	All        dayRun  `json:"all"`
	Dip        float64 `json:"dip"` // these of the few
	Recovery   float64 `json:"recoverySeconds"`
	Doubts     string  `json:"doubts"`
}

// dayRun is an accelerated run: pods simulate their intervals faster than in real time.
type dayRun struct {
	Pods     int     `json:"pods"`
	Interval float64 `json:"intervalSeconds"` // of the pods' recording
	Speed    float64 `json:"speed"`
	Samples  []hour  `json:"samples"`
}

func (r *dayRun) step() time.Duration {
	return time.Duration(r.Interval * float64(time.Second))
}

// hour is the state of the collecting process at an instant of the run.
type hour struct {
	Hours       float64 `json:"hours"`
	RecordMiB   float64 `json:"recordMiB"` // by Series.Memory
	HeapMiB     float64 `json:"heapMiB"`   // in use after a garbage collection
	ResidentMiB float64 `json:"residentMiB"`
	Step        float64 `json:"stepSeconds"`
	// of pulling and merging an interval, since the last sample
	CPUMicros       float64 `json:"cpuMicrosPerMerged"`
	CheckpointMilli float64 `json:"checkpointMilliseconds"`
	CheckpointKiB   float64 `json:"checkpointKiB"`
	Cores           float64 `json:"cores"` // of the run with all pods at its interval, in its own time
}

// runDay collects the two runs. All pods at the interval of the run would be 864 million intervals.
func runDay(ctx context.Context, options collectOptions) error {
	result := day{
		Machine: describeMachine(), Hours: options.day.Hours(), Operations: options.ops,
		Few: dayRun{
			Pods:     options.dayPods,
			Interval: options.step.Seconds(),
			Speed:    options.daySpeed,
		},
		All: dayRun{
			Pods:     options.agents,
			Interval: options.allStep.Seconds(),
			Speed:    options.allSpeed,
		},
	}
	debug.FreeOSMemory() // of what was measured before
	wrong := result.Few.collect(ctx, options, 0,
		func(session *collect.Session, store collect.Store) (err error) {
			at := options.day - outageAt
			session.Read(func(series *merged.Series) { err = result.analyze(series, at) })
			data, _ := store.Load(ctx) // does not fail
			stored, wrong := merged.Decode(data)
			if wrong == nil {
				wrong = result.analyze(stored, at)
			}
			return errors.Join(err, wrong)
		})
	debug.FreeOSMemory()
	every := time.Duration(perPull * float64(options.allStep) / options.allSpeed)
	wrong = errors.Join(wrong,
		result.All.collect(ctx, options, every, func(*collect.Session, collect.Store) error {
			return nil
		}))
	if len(result.Few.Samples) == 0 || len(result.Few.Samples) != len(result.All.Samples) {
		return errors.Join(wrong, errors.New("the two runs have not the same samples"))
	}
	fmt.Print(result.tables())
	wrong = errors.Join(wrong, writeJSON(dayFile, result))
	for i, h := range result.All.Samples {
		few := result.Few.Samples[i]
		wrong = errors.Join(wrong,
			meetsGoals(fmt.Sprintf("%.1f h after the start", h.Hours), max(few.Cores, h.Cores),
				result.resident(i)))
	}
	return wrong
}

// collect collects a run, and passes the session on at its end. pullEvery is in real time; 0 = the
// session's default.
func (r *dayRun) collect(
	ctx context.Context, options collectOptions, pullEvery time.Duration,
	end func(*collect.Session, collect.Store) error,
) error {
	credentials, err := agent.NewCredentials()
	if err != nil {
		return err
	}
	down := options.day - outageAt
	o := order{
		Run:         "day",
		Agents:      r.Pods,
		Step:        r.step(),
		PerInterval: options.perInterval,
		Ops:         options.ops,
		Credentials: credentials,
		Speed:       r.Speed,
		Paced:       true,
		Length:      options.day,
		DownFrom:    down,
		DownTo:      down + max(outageFor, r.step()),
	}
	pods, pace, stop, err := startAgents(ctx, o)
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
		Checkpoints: collect.Checkpoints{Every: dayCheckpoints},
		PullEvery:   pullEvery,
		Ahead:       o.Length, // the pods' clocks are faster
		Logger: slog.New(
			slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
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
	window := 2 * int64(float64(cmp.Or(pullEvery, collect.DefaultPullEvery))*r.Speed/float64(r.step()))
	follow := func() (at time.Duration, err error) {
		slowest := slowestPod(session)
		return time.Duration(slowest) * r.step(), pace(slowest + window)
	}
	if err := r.sample(ctx, session, store, options, follow); err != nil {
		return err
	}
	return end(session, store)
}

// analyze sets the figures of the outage from the record, or from that in the last checkpoint. It
// returns an error if they are not those of a short run.
func (d *day) analyze(series *merged.Series, at time.Duration) error {
	m := impact.Analyze(series, impact.Fault{At: at, Deadline: 2 * time.Minute}, impact.Options{})
	d.Dip = m.Dip.Value
	d.Recovery = m.RecoveryTime.Value.Seconds()
	d.Doubts = fmt.Sprint(m.Doubts)
	if d.Dip != 1 || len(m.Doubts) > 0 {
		return fmt.Errorf("an outage of %v: dip %.3f, doubts %v", outageFor, d.Dip, m.Doubts)
	}
	return nil
}

// sample follows the run to its end and takes a sample at its beginning and then every twelfth.
//
// It calls follow all the time, which returns how far the record is and lets the pods go on: they
// are at most two pulls ahead of the slowest one's record, as in real time, however busy the
// machine is.
func (r *dayRun) sample(
	ctx context.Context, session *collect.Session, store collect.Store, options collectOptions,
	follow func() (time.Duration, error),
) error {
	every := options.day / 12
	due := min(every, 10*time.Minute)
	cpu, before := cpuTime(), mergedIntervals(session)
	deadline := time.Now().Add(time.Duration(float64(options.day)/r.Speed)*6 + time.Minute)
	for {
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the operator does not keep up with the accelerated run; of the first pod it says: %q",
				session.Status().Pods[0].Err)
		}
		finished := session.Finished()
		at, err := follow()
		if err != nil {
			return err
		}
		if (at < due || at >= options.day) && !finished { // the last sample is that of the end
			continue
		}
		now := mergedIntervals(session)
		h := hour{
			Hours:     at.Hours(),
			CPUMicros: float64((cpuTime() - cpu).Microseconds()) / float64(max(1, now-before)),
		}
		h.measure(session, store, options)
		r.Samples = append(r.Samples, h)
		cpu, before = cpuTime(), mergedIntervals(session)
		if finished {
			return nil
		}
		due = (at/every + 1) * every
	}
}

// slowestPod is how many intervals of the pod with the fewest are merged.
func slowestPod(session *collect.Session) int64 {
	slowest := int64(math.MaxInt64)
	session.Read(func(series *merged.Series) {
		for pod := range series.Pods {
			slowest = min(slowest, series.Next(pod))
		}
	})
	return slowest
}

// measure sets what is read from the process and the record.
func (h *hour) measure(session *collect.Session, store collect.Store, options collectOptions) {
	session.Read(func(series *merged.Series) {
		h.RecordMiB, h.Step = float64(series.Memory())/(1<<20), series.Step.Seconds()
	})
	h.ResidentMiB = memoryMiB(os.Getpid(), "VmRSS")
	runtime.GC()
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	h.HeapMiB = float64(mem.HeapAlloc) / (1 << 20)
	perSecond := float64(options.agents) / options.step.Seconds()
	h.Cores = h.CPUMicros * perSecond / 1e6
	data, _ := store.Load(context.Background()) // does not fail
	series, err := merged.Decode(data)
	if err != nil {
		return // nothing was stored yet
	}
	cpu := cpuTime()
	if _, err := series.Encode(collect.DefaultCheckpointLimit); err == nil {
		h.CheckpointKiB = float64(len(data)) / (1 << 10)
		h.CheckpointMilli = (cpuTime() - cpu).Seconds() * 1000
	}
	h.Cores += h.CheckpointMilli / 1e3 / checkpointEvery.Seconds()
}

// resident is the computed resident memory with all pods at the interval of the run, at a sample:
// what all pods took at the longer one, and what the record is larger without it, with the garbage
// that the heap holds for it.
func (d *day) resident(i int) float64 {
	all, few := d.All.Samples[i], d.Few.Samples[i]
	return all.ResidentMiB + heapFactor*max(0, few.RecordMiB-all.RecordMiB)
}

func (d *day) tables() string {
	var b strings.Builder
	fmt.Fprintf(&b,
		"**Measured: %d pods** of %d operations, an interval every %g s, at most %g times as fast as "+
			"in real time:\n\n", d.Few.Pods, d.Operations, d.Few.Interval, d.Few.Speed)
	b.WriteString(
		"| hours | record MiB | heap MiB | resident MiB | counts per s | us per interval | checkpoint |\n" +
			"| ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, h := range d.Few.Samples {
		fmt.Fprintf(&b, "| %.1f | %.0f | %.0f | %.0f | %g | %.1f | %.0f KiB, %.0f ms |\n",
			h.Hours, h.RecordMiB, h.HeapMiB, h.ResidentMiB, h.Step, h.CPUMicros, h.CheckpointKiB,
			h.CheckpointMilli)
	}
	fmt.Fprintf(&b,
		"\nThe outage of 1 s an hour before the end, from the last checkpoint: dip %.2f, recoveryTime "+
			"%.1f s, doubts %s.\n", d.Dip, d.Recovery, d.Doubts)
	fmt.Fprintf(&b,
		"\n**Measured: %d pods** of %d operations, an interval every %g s, at most %g times as fast; "+
			"**computed: the same with one every %g s**:\n\n",
		d.All.Pods, d.Operations, d.All.Interval, d.All.Speed, d.Few.Interval)
	b.WriteString(
		"| hours | record MiB | heap MiB | resident MiB | us per interval | computed: resident MiB | computed: cores |\n" +
			"| ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for i, h := range d.All.Samples {
		fmt.Fprintf(&b, "| %.1f | %.0f | %.0f | %.0f | %.1f | %.0f | %.2f |\n",
			h.Hours, h.RecordMiB, h.HeapMiB, h.ResidentMiB, h.CPUMicros, d.resident(i),
			max(h.Cores, d.Few.Samples[i].Cores))
	}
	return b.String()
}

func daySection() (string, error) {
	var d day
	ok, err := readJSON(dayFile, &d)
	if !ok || err != nil || len(d.All.Samples) == 0 {
		return "", err
	}
	return d.Machine.describe() + d.tables(), nil
}

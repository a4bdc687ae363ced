package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// tick is the unit of CPU times in /proc, USER_HZ, on every architecture that Go supports.
	tick = 10 * time.Millisecond
	// busyLimit is the share of a core that others may use, of all cores under test together.
	busyLimit = 0.05
	// quietWithin is how long to wait for a quiet machine.
	quietWithin = 2 * time.Minute
)

// usage is the CPU time that had been used at an instant.
type usage struct {
	at        time.Time
	busy      time.Duration // the cores under test, together
	stolen    time.Duration // of that, by the hypervisor
	own       time.Duration // by this process, its children and the servers
	processes map[int]process
}

// process is another process.
type process struct {
	name     string
	cpu      time.Duration
	children time.Duration // that have ended
}

// others is what others have used of the cores under test.
type others struct {
	elapsed time.Duration
	used    time.Duration
	by      map[string]time.Duration // by name; empty if they cannot be seen
}

// look reads the present usage. servers are the processes of the servers.
func look(chosen cores, servers []int) (usage, error) {
	u := usage{at: time.Now(), processes: map[int]process{}}
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return u, err
	}
	var idle time.Duration
	if idle, u.stolen, err = idleAndStolen(string(text), chosen.all()); err != nil {
		return u, err
	}
	u.busy = -idle // until it is compared with another instant
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		if err := syscall.Getrusage(who, &r); err != nil {
			return u, err
		}
		u.own += time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	for _, pid := range servers {
		p, err := readProcess(pid)
		if err != nil {
			return u, fmt.Errorf("a server: %w", err)
		}
		u.own += p.cpu + p.children
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return u, err
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() || slices.Contains(servers, pid) {
			continue
		}
		if p, err := readProcess(pid); err == nil { // else it has just ended
			u.processes[pid] = p
		}
	}
	return u, nil
}

// idleAndStolen reads /proc/stat. Only the idle time is exact; the kernel samples the others, at
// times that may coincide with a tool's timers.
func idleAndStolen(text string, list []int) (idle, stolen time.Duration, err error) {
	found := 0
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 9 {
			continue
		}
		core, err := strconv.Atoi(strings.TrimPrefix(words[0], "cpu"))
		if err != nil || !slices.Contains(list, core) {
			continue
		}
		var ticks [8]int64 // user nice system idle iowait irq softirq steal
		for i := range ticks {
			if ticks[i], err = strconv.ParseInt(words[1+i], 10, 64); err != nil {
				return 0, 0, fmt.Errorf("/proc/stat: %w", err)
			}
		}
		idle += time.Duration(ticks[3]+ticks[4]) * tick
		stolen += time.Duration(ticks[7]) * tick
		found++
	}
	if found != len(list) {
		return 0, 0, fmt.Errorf("/proc/stat tells of %d of the cores %v", found, list)
	}
	return idle, stolen, nil
}

func readProcess(pid int) (process, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, err
	}
	return parseProcess(string(text))
}

// parseProcess reads a line of /proc/PID/stat. The name in parentheses may contain anything.
func parseProcess(text string) (process, error) {
	from, to := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if from < 0 || to < from {
		return process{}, errors.New("no line of a process")
	}
	words := strings.Fields(text[to+1:])
	if len(words) < 15 {
		return process{}, errors.New("too short a line of a process")
	}
	p := process{name: text[from+1 : to]}
	// utime stime cutime cstime
	for i, sum := range []*time.Duration{&p.cpu, &p.cpu, &p.children, &p.children} {
		ticks, err := strconv.ParseInt(words[11+i], 10, 64)
		if err != nil {
			return process{}, err
		}
		*sum += time.Duration(ticks) * tick
	}
	return p, nil
}

// since is what others have used since before. It is the smaller one of two measures:
//   - the time in which the cores were not idle, without what is ours. It contains the kernel's
//     work for wake-ups, which no process is charged for: up to
//     8 % of a core at thousands of wake-ups per second;
//   - the time of all other processes. It contains those on other cores, and misses those outside
//     of a container.
func (u *usage) since(before *usage, count int, allVisible bool) others {
	o := others{elapsed: u.at.Sub(before.at), by: map[string]time.Duration{}}
	o.used = time.Duration(count)*o.elapsed + u.busy - before.busy - (u.own - before.own)
	visible := u.stolen - before.stolen
	if visible > 0 {
		o.by["the hypervisor"] = visible
	}
	for pid, p := range u.processes {
		earlier := before.processes[pid]
		if used := p.cpu - earlier.cpu; used > 0 {
			o.by[p.name] += used
		}
		// A child that began earlier counts as a whole: too much, for which there is the other measure.
		visible += max(0, p.cpu+p.children-earlier.cpu-earlier.children)
	}
	if allVisible {
		o.used = min(o.used, visible)
	}
	o.used = max(o.used, 0)
	return o
}

// add joins another time.
func (o *others) add(more others) {
	o.elapsed += more.elapsed
	o.used += more.used
	if o.by == nil {
		o.by = map[string]time.Duration{}
	}
	for name, used := range more.by {
		o.by[name] += used
	}
}

// share is that of one core.
func (o *others) share() float64 {
	if o.elapsed == 0 {
		return 0
	}
	return float64(o.used) / float64(o.elapsed)
}

// String is "34% of a core is used by others (go 20%, compile 10%)", with those that use the most.
func (o *others) String() string {
	names := slices.SortedFunc(maps.Keys(o.by), func(a, b string) int {
		return cmp.Or(cmp.Compare(o.by[b], o.by[a]), cmp.Compare(a, b))
	})
	var most []string
	for _, name := range names[:min(3, len(names))] {
		if share := float64(o.by[name]) / float64(o.elapsed); share >= 0.01 {
			most = append(most, fmt.Sprintf("%s %.0f%%", name, 100*share))
		}
	}
	text := fmt.Sprintf("%.0f%% of a core is used by others", 100*o.share())
	if len(most) > 0 {
		text += " (" + strings.Join(most, ", ") + ")"
	}
	return text
}

// watcher measures what others use of the cores under test.
type watcher struct {
	cores      cores
	allVisible bool
}

func newWatcher(chosen cores) watcher {
	kthreadd, err := readProcess(2)
	// else this is a container with its own process numbers
	return watcher{cores: chosen, allVisible: err == nil && kthreadd.name == "kthreadd"}
}

// during measures while f runs.
func (w watcher) during(servers []int, f func() error) (others, error) {
	before, err := look(w.cores, servers)
	if err != nil {
		return others{}, err
	}
	failed := f()
	after, err := look(w.cores, servers)
	if err != nil {
		return others{}, errors.Join(failed, err)
	}
	return after.since(&before, len(w.cores.all()), w.allVisible), failed
}

// waitQuiet waits until others use less than the limit for a second.
func (w watcher) waitQuiet(ctx context.Context, servers []int) error {
	for end, told := time.Now().Add(quietWithin), false; ; told = true {
		now, err := w.during(servers, func() error { return pause(ctx, time.Second) })
		if err != nil || now.share() <= busyLimit {
			return err
		}
		if time.Now().After(end) {
			return busyError(now)
		}
		if !told {
			fmt.Printf("  waiting for up to %v: %s\n", quietWithin, now.String())
		}
	}
}

func busyError(now others) error {
	return fmt.Errorf("the machine is busy: %s; stop them or pass --allow-busy", now.String())
}

package bottleneck

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// Threads begin and end: what one had waited stays in the sum, also if its number is given to another one.
func TestThreadsThatEndStayInTheSum(t *testing.T) {
	dir := t.TempDir()
	set := func(thread, schedstat string) {
		t.Helper()
		path := filepath.Join(dir, "task", thread)
		if schedstat == "" {
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			return
		}
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "schedstat"), []byte(schedstat), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	all := newThreads(dir)
	if got := all.read(); got != -1 {
		t.Errorf("without a task: %v, want that it is unknown", got)
	}
	for _, step := range []struct {
		thread, schedstat string
		want              float64
	}{
		{"1", "0 0 0\n", -1}, // a kernel that does not count
		{"1", "5000000000 1000000000 17\n", 1},
		{"2", "1 500000000 1\n", 1.5},
		{"2", "1 750000000 2\n", 1.75},
		{"2", "", 1.75},
		{"1", "6000000000 2000000000 18\n", 2.75},
		{"2", "1 250000000 1\n", 3}, // another thread with the number of one that ended
		{"2", "1 1000000 1\n", 3.001},
		{"3", "not a number", 3.001},
	} {
		if set(step.thread, step.schedstat); math.Abs(all.read()-step.want) > 1e-9 {
			t.Errorf("thread %s with %q: %v, want %v", step.thread, step.schedstat, all.read(), step.want)
		}
	}
}

// Of what the hypervisor took from the machine, a process is told as large a part as that of its CPU time in all that
// ran.
func TestStolenTimeIsSharedByUse(t *testing.T) {
	var s stealing
	for i, step := range []struct {
		used float64
		stat string // user nice system idle iowait irq softirq steal
		want float64
	}{
		{10, "cpu  1000 0 1000 5000 0 0 0 500 0 0\ncpu0 1 1 1 1\n", 0},
		{10.5, "cpu  1050 20 1030 5000 0 0 0 600 0 0\n", 0.5}, // 0.5 of 1 s that ran, 1 s stolen
		{10.5, "cpu  1200 20 1030 5000 0 0 0 700 0 0\n", 0.5},
		{11, "", 0.5},
		{11.5, "cpu  1250 20 1080 5000 0 0 0 800 0 0\n", 1.5}, // all that ran was this process
	} {
		for n := range stealEvery {
			got := s.add(step.used, func() string {
				if n > 0 {
					t.Error("read before a part is due")
				}
				return step.stat
			})
			if math.Abs(got-step.want) > 1e-9 {
				t.Errorf("part %d: %v, want %v", i, got, step.want)
			}
		}
	}
}

func TestParseStatRefuses(t *testing.T) {
	for _, text := range []string{"", "cpu 1 2 3", "cpu0 1 1 1 1 1 1 1 1", "cpu 1 x 1 1 1 1 1 1 1"} {
		if _, _, ok := parseStat(text); ok {
			t.Errorf("%q is read", text)
		}
	}
}

// BenchmarkSelf measures a reading of this process, of which a load pod makes one in each interval.
func BenchmarkSelf(b *testing.B) {
	self := NewSelf()
	for name, read := range map[string]func(){"all": func() { self.Read() }, "threads": func() { self.threads.read() }} {
		b.Run(name, func(b *testing.B) {
			before := self.Read().CPUSeconds
			for b.Loop() {
				read()
			}
			b.ReportMetric(1e6*(self.Read().CPUSeconds-before)/float64(b.N), "cpu-us/op") // as others may have the CPU meanwhile
		})
	}
}

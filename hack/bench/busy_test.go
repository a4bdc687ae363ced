package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const procStat = `cpu  100 0 50 2000 10 0 5 3 0 0
cpu0 40 0 20 900 6 0 3 1 0 0
cpu1 60 0 30 1100 4 0 2 2 0 0
cpu10 1 1 1 1 1 1 1 1 0 0
intr 12345 0 0
`

func TestIdleAndStolen(t *testing.T) {
	idle, stolen, err := idleAndStolen(procStat, []int{0, 1})
	if err != nil || idle != 20100*time.Millisecond || stolen != 30*time.Millisecond {
		t.Errorf("idle %v, stolen %v, %v; want 20.1s, 30ms", idle, stolen, err)
	}
	if _, _, err := idleAndStolen(procStat, []int{0, 2}); err == nil {
		t.Error("a core that is not there was found")
	}
}

func TestParseProcess(t *testing.T) {
	const line = "4242 (a) (b c) S 1 4242 4242 0 -1 4194560 100 200 0 0 11 22 33 44 20 0 5 0 12345 1000000 500 18446744073709551615"
	got, err := parseProcess(line)
	if want := (process{name: "a) (b c", cpu: 330 * time.Millisecond, children: 770 * time.Millisecond}); err != nil ||
		got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	for _, bad := range []string{"", "4242 (a", "4242 (a) S 1 2 3"} {
		if _, err := parseProcess(bad); err == nil {
			t.Errorf("%q was taken for a process", bad)
		}
	}
}

func TestSince(t *testing.T) {
	began := time.Unix(1000, 0)
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	before := usage{
		at:        began,
		busy:      -ms(5000),
		own:       ms(100),
		stolen:    ms(10),
		processes: map[int]process{7: {"go", ms(5000), 0}, 8: {"gone", ms(900), 0}},
	}
	for _, tt := range []struct {
		name       string
		idle       int // of 2000 ms
		own        int
		stolen     int
		processes  map[int]process
		allVisible bool
		want       float64
	}{
		{"nobody", 1990, 10, 0, map[int]process{7: {"go", ms(5000), 0}}, true, 0},
		{"a process", 1500, 200, 0, map[int]process{7: {"go", ms(5300), 0}}, true, 0.3},
		{"a new process", 1500, 200, 0, map[int]process{7: {"go", ms(5000), 0}, 9: {"new", ms(300), 0}}, true, 0.3},
		{"the end of a child", 1500, 200, 0, map[int]process{7: {"go", ms(5000), ms(200)}}, true, 0.2},
		{"another core's process", 1790, 200, 0, map[int]process{7: {"go", ms(5900), 0}}, true, 0.01},
		{"the kernel's wake-ups", 1500, 430, 0, map[int]process{7: {"go", ms(5010), 0}}, true, 0.01},
		{"a hypervisor", 1500, 200, 300, map[int]process{7: {"go", ms(5000), 0}}, true, 0.3},
		{"outside of a container", 1500, 200, 0, map[int]process{}, false, 0.3},
		{"ticks that round ours up", 1500, 510, 0, map[int]process{}, false, 0},
	} {
		after := usage{
			at:        began.Add(time.Second),
			busy:      -ms(5000 + tt.idle),
			own:       ms(100 + tt.own),
			stolen:    ms(10 + tt.stolen),
			processes: tt.processes,
		}
		o := after.since(&before, 2, tt.allVisible)
		if got := o.share(); got < tt.want-1e-9 || got > tt.want+1e-9 {
			t.Errorf("%s: %.3f of a core, want %.3f", tt.name, got, tt.want)
		}
	}
}

func TestOthersString(t *testing.T) {
	var o others
	o.add(others{
		elapsed: time.Second,
		used:    300 * time.Millisecond,
		by:      map[string]time.Duration{"go": 200 * time.Millisecond, "little": time.Millisecond},
	})
	o.add(others{
		elapsed: time.Second,
		used:    400 * time.Millisecond,
		by:      map[string]time.Duration{"go": 200 * time.Millisecond, "compile": 300 * time.Millisecond},
	})
	want := "the machine is busy: 35% of a core is used by others (go 20%, compile 15%); stop them or pass --allow-busy"
	if got := busyError(o).Error(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestWatcherSeesOthers: what a process that is not ours uses is others', what a child of ours or a server uses is not.
func TestWatcherSeesOthers(t *testing.T) {
	allowed, err := allowedCores()
	if err != nil {
		t.Fatal(err)
	}
	w := newWatcher(cores{tool: allowed[0], servers: allowed[1:]})
	const name = "bench-busy"
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(shell, program); err != nil {
		t.Fatal(err)
	}
	busy := exec.Command(program, "-c", "while :; do :; done")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = busy.Process.Kill()
		_ = busy.Wait()
	}()
	pause := func() error { time.Sleep(500 * time.Millisecond); return nil }
	mine, err := w.during([]int{busy.Process.Pid}, pause)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := w.during(nil, pause)
	if err != nil {
		t.Fatal(err)
	}
	if mine.by[name] > 0 {
		t.Errorf("a server is one of the others: %s", mine.String())
	}
	if foreign.share() < 0.1 || foreign.by[name] == 0 {
		t.Errorf("a busy process is not one of the others: %s", foreign.String())
	}
}

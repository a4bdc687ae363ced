package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"strconv"
	"testing"
)

func TestChooseCores(t *testing.T) {
	alone := func(core int) []int { return []int{core} }
	// 0 and 1, 2 and 3 are hardware threads of one core each
	pairs := func(core int) []int { return []int{core &^ 1, core | 1} }
	halves := func(core int) []int { return []int{core % 4, core%4 + 4} }
	for _, tt := range []struct {
		name     string
		allowed  []int
		siblings func(int) []int
		want     cores
	}{
		{"two", []int{0, 1}, alone, cores{servers: []int{0}, tool: 1}},
		{"three: servers share one", []int{2, 5, 7}, alone, cores{servers: []int{2}, tool: 5}},
		{"four", []int{0, 1, 2, 3}, alone, cores{servers: []int{0, 2, 3}, tool: 1}},
		{"two hardware threads", []int{0, 1}, pairs, cores{servers: []int{0}, tool: 1}},
		{"two cores of two threads", []int{0, 1, 2, 3}, pairs, cores{servers: []int{0}, tool: 2}},
		{"four cores of two threads", []int{0, 1, 2, 3, 4, 5, 6, 7}, halves, cores{servers: []int{0, 2, 3}, tool: 1}},
		{"the kernel does not tell", []int{0, 1}, func(int) []int { return nil }, cores{servers: []int{0}, tool: 1}},
	} {
		got, err := chooseCores(tt.allowed, tt.siblings)
		if err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v, %v; want %+v", tt.name, got, err, tt.want)
		}
	}
	if _, err := chooseCores([]int{3}, alone); err == nil {
		t.Error("one core was enough for server and tool")
	}
}

func TestParseCores(t *testing.T) {
	for text, want := range map[string][]int{"0": {0}, "0-2,8": {0, 1, 2, 8}, "": nil, "a-b": nil} {
		if got := parseCores(text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// TestOnCore: all threads of a process that is started on a core, and only that process, may use that core only.
func TestOnCore(t *testing.T) {
	allowed, err := allowedCores()
	if err != nil {
		t.Fatal(err)
	}
	core := allowed[len(allowed)-1]
	cmd := exec.Command("sleep", "60")
	if err := onCore(core, cmd.Start); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	if got := field(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid), "Cpus_allowed_list"); got != strconv.Itoa(core) {
		t.Errorf("it may use %s, not only %d", got, core)
	}
	if after, err := allowedCores(); err != nil || !reflect.DeepEqual(after, allowed) {
		t.Errorf("this process may use %v afterwards, not %v (%v)", after, allowed, err)
	}
}

func TestOnCoreFails(t *testing.T) {
	allowed, err := allowedCores()
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("no")
	if err := onCore(allowed[0], func() error { return refused }); !errors.Is(err, refused) {
		t.Errorf("%v, want %v", err, refused)
	}
	if err := onCore(allowed[0], func() error { runtime.Goexit(); return nil }); err == nil {
		t.Error("an early end was taken for success")
	}
	if err := onCore(1000, func() error { return nil }); err == nil && !isThere(1000) {
		t.Error("something ran on a core that is not there")
	}
}

func isThere(core int) bool {
	_, err := os.Stat(fmt.Sprintf("/sys/devices/system/cpu/cpu%d", core))
	return err == nil
}

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cores are where servers and tools run: a tool never shares a core with a server, and the
// scheduler moves neither.
type cores struct {
	tool    int
	servers []int // in turn, if there are more servers
}

// mostServers is the number of servers of the largest deployment.
const mostServers = 3

// chooseCores takes cores that this process may use. Hardware threads of one core are taken
// together only if there is no other choice.
func chooseCores(allowed []int, siblings func(core int) []int) (cores, error) {
	var apart, rest []int
	for _, core := range allowed {
		if slices.ContainsFunc(siblings(core), func(other int) bool {
			return slices.Contains(apart,
				other)
		}) {
			rest = append(rest, core)
		} else {
			apart = append(apart, core)
		}
	}
	list := slices.Concat(apart, rest)
	if len(list) < 2 {
		return cores{}, fmt.Errorf("server and tool need a core each, but this process may use %d",
			len(list))
	}
	chosen := cores{servers: list[:1], tool: list[1]}
	if len(apart) > mostServers {
		chosen.servers = slices.Concat(list[:1], list[2:1+mostServers])
	}
	return chosen, nil
}

// allowedCores are those that the kernel lets this process use.
func allowedCores() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, err
	}
	var list []int
	for core := range len(set) * strconv.IntSize {
		if set.IsSet(core) {
			list = append(list, core)
		}
	}
	return list, nil
}

// siblingsOf are the hardware threads of a core, itself included; none if the kernel does not tell.
func siblingsOf(core int) []int {
	text, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
		core))
	if err != nil {
		return nil
	}
	return parseCores(strings.TrimSpace(string(text)))
}

// parseCores reads a list as the kernel writes it, such as 0-2,8.
func parseCores(text string) []int {
	var list []int
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if errors.Join(err, err2) != nil {
			return nil
		}
		for core := first; core <= last; core++ {
			list = append(list, core)
		}
	}
	return list
}

// all are the cores in use.
func (c cores) all() []int {
	return append(slices.Clone(c.servers), c.tool)
}

func (c cores) String() string {
	text := fmt.Sprintf("servers on core %s, tool on core %d",
		strings.Join(strings.Fields(strings.Trim(fmt.Sprint(c.servers), "[]")), ", "), c.tool)
	if slices.Contains(siblingsOf(c.tool), c.servers[0]) {
		text += ", which are two hardware threads of one core"
	}
	return text
}

// moveProcess moves all threads of a process to a core.
func moveProcess(pid, core int) error {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	var set unix.CPUSet
	set.Set(core)
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(id, &set); err != nil {
			return fmt.Errorf("core %d: %w", core, err)
		}
	}
	return nil
}

// onCore calls start, and what it starts runs on that core only, all its threads included: a
// process inherits the affinity of the thread that starts it.
// The thread ends with the call. start may end by runtime.Goexit.
func onCore(core int, start func() error) error {
	err := errors.New("it ended early")
	done := make(chan struct{})
	go func() {
		defer close(done)
		// never unlocked: the thread ends with the goroutine, and nothing else runs on it
		runtime.LockOSThread()
		var set unix.CPUSet
		set.Set(core)
		if denied := unix.SchedSetaffinity(0, &set); denied != nil {
			err = fmt.Errorf("core %d: %w", core, denied)
			return
		}
		err = start()
	}()
	<-done
	return err
}

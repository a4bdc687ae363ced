package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// grace is how long a program may take to end after its time limit, or after it was told to.
const grace = time.Minute

// runOnce runs a package once and writes down what came of it. A run that was interrupted leaves
// nothing.
func (t *tests) runOnce(ctx context.Context, p testPackage, one turn) error {
	seed := rand.Int64N(1 << 40)
	began := time.Now()
	text, failed, err := t.run(ctx, p, one, seed)
	if err != nil || ctx.Err() != nil {
		return err
	}
	seconds := time.Since(began).Seconds()
	out, err := readOutput(p, text)
	if err != nil {
		return err
	}
	e := entry{
		Package: p.name,
		Beside:  one.load.String(),
		Run:     p.run,
		Seed:    seed,
		Seconds: rounded(seconds),
		Tests:   out.outcomes(),
	}
	failures := 0
	for _, test := range e.Tests {
		if test.Failed {
			failures++
		}
	}
	e.Failed = failed && failures == 0
	t.mutex.Lock()
	defer t.mutex.Unlock()
	fmt.Printf("%s: %d passed, %d failed in %.0f s\n", p.name, len(e.Tests)-failures, failures,
		seconds)
	if failed {
		if err := t.keepFailures(p, one, e, out.all.String()); err != nil {
			return err
		}
	}
	return t.journal.add(e)
}

func rounded(seconds float64) float64 {
	return float64(int(seconds*100+0.5)) / 100
}

// run runs the program of a package to its end, and reports whether that failed.
func (t *tests) run(
	ctx context.Context, p testPackage, one turn, seed int64,
) (text []byte, failed bool, err error) {
	// The kernel sends the signal for Pdeathsig when the thread ends that started the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	limited, cancel := context.WithTimeout(ctx, t.timeout+grace)
	defer cancel()
	argv := append(slices.Clone(p.through), t.program(p), "-test.v=test2json", "-test.paniconexit0",
		"-test.run="+p.run, "-test.shuffle="+strconv.FormatInt(seed, 10),
		"-test.parallel="+strconv.Itoa(p.parallel), "-test.timeout="+t.timeout.String())
	c := exec.CommandContext(limited, argv[0], argv[1:]...)
	c.Dir = p.folder
	mark := fmt.Sprintf("REDQUAKE_STRESS_RUN=%d-%d", os.Getpid(), seed)
	c.Env = append(environment(), "PWD="+p.folder, mark)
	if !p.alone {
		c.Env = append(c.Env, sharedVariable+"="+one.kubeconfig)
	}
	// A group of its own: servers that a program leaves behind when its time is over would burden all
	// that run later.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	c.WaitDelay = grace
	var output bytes.Buffer
	c.Stdout, c.Stderr = &output, &output
	if err := c.Start(); err != nil {
		return nil, false, err
	}
	failed = c.Wait() != nil
	_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	return output.Bytes(), failed, killMarked(mark)
}

// killMarked kills the processes whose environment has a mark: API servers that tests start are in
// groups of their own.
func killMarked(mark string) error {
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return err
	}
	for _, file := range files {
		environ, err := os.ReadFile(file)
		if err != nil || !slices.Contains(strings.Split(string(environ), "\x00"), mark) {
			continue // another user's, or it has ended
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			return err
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("killing process %d, which a test has left behind: %w", pid, err)
		}
	}
	return nil
}

func readOutput(p testPackage, text []byte) (*outputs, error) {
	// without -t it would not tell how long a test took
	c := exec.Command("go", "tool", "test2json", "-t", "-p", p.name)
	c.Stdin, c.Stderr = bytes.NewReader(text), os.Stderr
	events, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go tool test2json: %w", err)
	}
	out := newOutputs()
	return out, out.read(bytes.NewReader(events))
}

// keepFailures writes the output of each test that failed to a file, and that of the whole program
// to another.
func (t *tests) keepFailures(p testPackage, one turn, e entry, all string) error {
	head := fmt.Sprintf(
		"%s, round %d beside %s; the code is %s. The same order of tests:\ngo test -tags %s -count=1 -parallel %d -shuffle=%d -run '%s' ./%s\n\n",
		p.name, one.number, e.Beside, t.key, p.tag, p.parallel, e.Seed, p.run, p.name)
	name := fmt.Sprintf("%s %s %d", p.name, one.load.fileName(), one.number)
	path, err := t.keep(name, head+all)
	if err != nil {
		return err
	}
	if e.Failed {
		fmt.Printf("  the program failed, but none of its tests: %s\n", path)
	}
	for _, test := range e.Tests {
		if !test.Failed {
			continue
		}
		path, err := t.keep(name+" "+test.Test, head+test.output)
		if err != nil {
			return err
		}
		fmt.Printf("  FAIL %s: %s\n", strings.Join(append([]string{test.Test}, test.Subtests...), " "),
			path)
	}
	return nil
}

// keep writes a file of a failure, and returns its path.
func (t *tests) keep(name, text string) (string, error) {
	path := filepath.Join(t.failures(), fileName(name)+".log")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, []byte(text), 0o644)
}

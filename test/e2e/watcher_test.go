//go:build e2e

package e2e_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// The watcher is an independent measurement: a separate process that shares no code with the load. A hundred times a
// second it dials, sets a key, and records when that succeeded. It is this test's binary, started again with
// watcherAddress set.
const (
	watcherAddress  = "REDQUAKE_E2E_WATCH"
	watcherPeriod   = 10 * time.Millisecond
	watcherPatience = time.Second
)

// watchRedis writes one line for each success, its instant in nanoseconds of Unix time, until its input is closed.
func watchRedis(address string, out io.Writer) int {
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	var mu sync.Mutex
	ticker := time.NewTicker(watcherPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return 0
		case <-ticker.C:
			go func() {
				if at, err := setOnce(address); err == nil {
					mu.Lock()
					defer mu.Unlock()
					_, _ = fmt.Fprintln(out, at.UnixNano())
				}
			}()
		}
	}
}

// setOnce dials, sets a key, and returns when the +OK came.
func setOnce(address string) (time.Time, error) {
	conn, err := net.DialTimeout("tcp", address, watcherPatience)
	if err != nil {
		return time.Time{}, err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(watcherPatience)); err != nil {
		return time.Time{}, err
	}
	if _, err := io.WriteString(conn, "*3\r\n$3\r\nSET\r\n$11\r\ne2e:watcher\r\n$1\r\n1\r\n"); err != nil {
		return time.Time{}, err
	}
	reply := make([]byte, 5)
	if _, err := io.ReadFull(conn, reply); err != nil {
		return time.Time{}, err
	}
	at := time.Now()
	if string(reply) != "+OK\r\n" {
		return time.Time{}, fmt.Errorf("redis replied %q", reply)
	}
	return at, nil
}

// watcher is a running watcher process.
type watcher struct {
	*namespace
	stop func() []time.Time // ends it and returns the instants of its successes, in order
}

func (n *namespace) startWatcher(address string) watcher {
	n.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), watcherAddress+"="+address)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		n.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		n.Fatal(err)
	}
	end := sync.OnceValue(func() error {
		_ = in.Close()
		return cmd.Wait()
	})
	n.Cleanup(func() { _ = end() })
	return watcher{n, func() []time.Time {
		n.Helper()
		if err := end(); err != nil {
			n.Fatalf("the watcher: %v", err)
		}
		var seen []time.Time
		for lines := bufio.NewScanner(&out); lines.Scan(); {
			at, err := strconv.ParseInt(lines.Text(), 10, 64)
			if err != nil {
				n.Fatalf("the watcher wrote %q", lines.Text())
			}
			seen = append(seen, time.Unix(0, at))
		}
		slices.SortFunc(seen, time.Time.Compare)
		return seen
	}}
}

// longestGap is the longest stretch between two successes that ends after t0.
func longestGap(seen []time.Time, t0 time.Time) (from time.Time, length time.Duration) {
	for i := 1; i < len(seen); i++ {
		if d := seen[i].Sub(seen[i-1]); seen[i].After(t0) && d > length {
			from, length = seen[i-1], d
		}
	}
	return from, length
}

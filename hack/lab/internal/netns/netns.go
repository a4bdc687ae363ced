// Package netns makes, enters and removes the lab's network namespace.
//
// It does what `ip netns` does without two of its habits: `ip netns add` leaves a mount of
// /run/netns on itself behind, and `ip netns exec` hides /sys/fs/cgroup, which kubelets need.
package netns

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// Create makes a new network namespace and pins it at path, unless it exists.
func Create(path string) error {
	if Exists(path) {
		return nil
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o444)
	if err != nil {
		return fmt.Errorf("creating the network namespace: %w", err)
	}
	f.Close()
	return onOwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf(
				"creating a network namespace: %w (is this root, with namespaces in the kernel?)", err)
		}
		if err := unix.Mount("/proc/thread-self/ns/net", path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("pinning the network namespace at %s: %w", path, err)
		}
		return nil
	})
}

// Remove unpins the namespace at path. The kernel frees it when the last process in it has ended.
func Remove(path string) error {
	for Exists(path) {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmounting %s: %w", path, err)
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Do runs f inside the namespace at path. Processes that f starts and sockets that f opens, on its
// own goroutine, belong to the namespace.
func Do(path string, f func() error) error {
	return onOwnThread(func() error {
		if err := enter(path); err != nil {
			return err
		}
		return f()
	})
}

// Exec becomes the program argv inside the namespace at path; it returns only if that fails.
func Exec(path, program string, argv, env []string) error {
	runtime.LockOSThread() // exec makes the calling thread, and so its namespace, the whole process
	if err := enter(path); err != nil {
		return err
	}
	err := unix.Exec(program, argv, env)
	return fmt.Errorf("running %s: %w", program, err)
}

// Occupants are the processes whose network namespace is the one at path.
func Occupants(path string) []int {
	var want unix.Stat_t
	if !Exists(path) || unix.Stat(path, &want) != nil {
		return nil
	}
	links, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	var pids []int
	for _, link := range links {
		var st unix.Stat_t
		if unix.Stat(link, &st) != nil || st.Ino != want.Ino || st.Dev != want.Dev {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(link)))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Exists reports whether path is a live network namespace, rather than nothing or a file left by a
// crash.
func Exists(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) == nil && st.Type == unix.NSFS_MAGIC
}

func enter(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf(
			"the lab's network namespace is not there: %w; start the lab with: hack/lab/lab up", err)
	}
	defer f.Close()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf(
			"entering the network namespace %s: %w; if it is a left-over, run: hack/lab/lab down", path, err)
	}
	return nil
}

// onOwnThread runs f on a thread that is thrown away afterwards, so that its namespace is never
// used again.
func onOwnThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		done <- f()
	}()
	return <-done
}

package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// space is a namespace to enter.
type space struct {
	kind int
	path string
}

// kinds are the namespaces of each flag. A mount namespace, as nsexec -m has it, is for faults of
// volumes, which need more than this program.
var kinds = map[string]int{
	"-i": unix.CLONE_NEWIPC,
	"-n": unix.CLONE_NEWNET,
	"-p": unix.CLONE_NEWPID,
}

// parse reads nsexec [-i PATH] [-n PATH] [-p PATH] -- COMMAND.
func parse(args []string) (spaces []space, command []string, err error) {
	for len(args) > 0 && args[0] != "--" {
		kind, known := kinds[args[0]]
		if !known || len(args) < 2 {
			return nil, nil, fmt.Errorf(
				"got %q; usage: nsexec [-i PATH] [-n PATH] [-p PATH] -- COMMAND: no other flag is supported", args)
		}
		spaces = append(spaces, space{kind: kind, path: args[1]})
		args = args[2:]
	}
	if len(args) < 2 {
		return nil, nil, fmt.Errorf("after the namespaces come -- and a command, not %q", args)
	}
	return spaces, args[1:], nil
}

// nsexec runs a command in other namespaces.
func nsexec(args []string) error {
	spaces, command, err := parse(args)
	if err != nil {
		return err
	}
	// The agent ends a command by a signal to this process, which may come while it starts.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	forks := false
	for _, s := range spaces {
		if err := s.enter(); err != nil {
			return err
		}
		forks = forks || s.kind == unix.CLONE_NEWPID
	}
	if !forks {
		return become(command)
	}
	return runChild(command, signals)
}

func (s space) enter() error {
	file, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := unix.Setns(int(file.Fd()), s.kind); err != nil {
		return fmt.Errorf("enter %s: %w", s.path, err)
	}
	return nil
}

// runChild runs the command as a child, as only children are in another PID namespace, and passes
// signals on.
func runChild(command []string, signals <-chan os.Signal) error {
	child := exec.Command(command[0], command[1:]...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	// It has no Pdeathsig: Go would compare the parents that the two namespaces show, and end it.
	if err := child.Start(); err != nil {
		return err
	}
	go func() {
		for s := range signals {
			_ = child.Process.Signal(s) // it has ended
		}
	}()
	return child.Wait()
}

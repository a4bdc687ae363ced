// Command agent is what Chaos Mesh's agent calls beside the packages of a distribution, for tests:
// its own programs nsexec and pause are published as binaries only. It is the one whose name it is
// called by.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
)

func main() {
	name := filepath.Base(os.Args[0])
	err := run(name, os.Args[1:])
	var ended *exec.ExitError
	switch {
	case errors.As(err, &ended):
		os.Exit(codeOf(ended))
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// run returns once the command has ended, unless that takes the place of this process.
func run(name string, args []string) error {
	// Namespaces belong to a thread: the same one must enter them and start the command. It is the
	// main thread, so that the kernel ends the command with this process, and not with a thread of it.
	runtime.LockOSThread()
	switch name {
	case "pause":
		return pause(args)
	case "nsexec":
		return nsexec(args)
	}
	return errors.New("it is called nsexec or pause")
}

// pause becomes the command after SIGCONT. Until then it has the name pause, by which the agent sees
// whether its signal has come: it sends one after another.
func pause(command []string) error {
	goOn := make(chan os.Signal, 1)
	signal.Notify(goOn, syscall.SIGCONT)
	<-goOn
	return become(command)
}

// become replaces this process by a command.
func become(command []string) error {
	if len(command) == 0 {
		return errors.New("there is no command")
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	return fmt.Errorf("execute %s: %w", path, syscall.Exec(path, command, os.Environ()))
}

// codeOf is the exit code of a shell for a command that has ended so.
func codeOf(ended *exec.ExitError) int {
	status, ok := ended.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return ended.ExitCode()
}

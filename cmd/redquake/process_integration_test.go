//go:build integration

package main

import (
	"errors"
	"os"
	"os/exec"
	"testing"
)

// asCommand in its environment makes the test binary run the command, so that no other binary has to be built.
const asCommand = "REDQUAKE_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	code := m.Run()
	stopAPIServer()
	os.Exit(code)
}

// process is a running command.
type process struct {
	cmd      *exec.Cmd
	out, err tail
}

// begin starts the command. env is added to the environment without a password in it.
func begin(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(os.Args[0], args...)}
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), asCommand + "=1"}, env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.err
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	})
	return p
}

// code waits for the exit and returns the exit code.
func (p *process) code(t *testing.T) int {
	t.Helper()
	err := p.cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

// runCommand runs the command to its end.
func runCommand(t *testing.T, env []string, args ...string) (code int, out, err string) {
	t.Helper()
	p := begin(t, env, args...)
	code = p.code(t)
	return code, p.out.String(), p.err.String()
}

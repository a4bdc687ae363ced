package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// sharedVariable is SharedVariable of internal/testing/cluster, which would link Kubernetes'
// client.
const sharedVariable = "REDQUAKE_TEST_KUBECONFIG"

func (t *tests) controlPlaneProgram() string {
	return filepath.Join(t.folder, "bin", t.key, "controlplane")
}

// controlPlane starts an API server by hack/tools/controlplane, if wanted, and returns the path of
// its kubeconfig. It ends with end, and if this program is killed: the command that keeps it
// running reads until its input ends.
func (t *tests) controlPlane(wanted bool) (kubeconfig string, end func() error, err error) {
	if !wanted {
		return "", func() error { return nil }, nil
	}
	c := exec.Command(t.controlPlaneProgram(), "sh", "-c", `echo "$`+sharedVariable+`"; exec cat >&2`)
	c.Stderr = os.Stderr
	// an interrupt from the terminal ends the tests first
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := c.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	output, err := c.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := c.Start(); err != nil {
		return "", nil, err
	}
	end = func() error {
		_ = input.Close()
		_, _ = io.Copy(io.Discard, output)
		if err := c.Wait(); err != nil {
			return fmt.Errorf("hack/tools/controlplane: %w", err)
		}
		return nil
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("no API server: %w", err), end())
	}
	return strings.TrimSpace(line), end, nil
}

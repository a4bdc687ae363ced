// Command controlplane runs a command beside a kube-apiserver with the project's CRDs, from the
// folder KUBEBUILDER_ASSETS. The environment variable cluster.SharedVariable holds its kubeconfig,
// so that the test packages share it.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/redquake/redquake/internal/testing/cluster"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: controlplane COMMAND [ARGUMENT...]")
		os.Exit(2)
	}
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "controlplane: %v\n", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// run returns the command's exit code.
func run(command []string) (code int, err error) {
	env, err := cluster.StartControlPlane()
	if err != nil {
		return 0, err
	}
	defer func() {
		if failed := env.Stop(); failed != nil && err == nil {
			err = fmt.Errorf("stop the control plane: %w", failed)
		}
	}()
	folder, err := os.MkdirTemp("", "controlplane")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	user, err := env.AddUser(envtest.User{Name: "tests", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return 0, fmt.Errorf("add a user: %w", err)
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		return 0, err
	}
	path := filepath.Join(folder, "kubeconfig")
	if err := os.WriteFile(path, kubeconfig, 0o600); err != nil {
		return 0, err
	}
	// An interrupt from the terminal reaches the command by itself; this program continues in order to
	// stop what it started.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	c := exec.Command(command[0], command[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.Env = append(os.Environ(), cluster.SharedVariable+"="+path)
	if err := c.Run(); err != nil && c.ProcessState == nil {
		return 0, err
	}
	return c.ProcessState.ExitCode(), nil
}

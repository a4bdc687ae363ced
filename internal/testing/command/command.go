// Package command runs a program in tests, and gives tests access to a cluster as programs have it.
package command

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Process is a program that runs. Out and Err are what it has written; they may be read after Code.
type Process struct {
	*exec.Cmd
	Out, Err bytes.Buffer
	t        *testing.T
}

// Start starts a program with variables added to the environment. It is killed at the end of the test, which shows its
// output if it has failed.
func Start(t *testing.T, program string, env []string, args ...string) *Process {
	t.Helper()
	p := &Process{Cmd: exec.Command(program, args...), t: t}
	p.Env = append(os.Environ(), env...)
	p.Stdout, p.Stderr = &p.Out, &p.Err
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.ProcessState == nil {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
		if t.Failed() {
			t.Logf("%s %s\n%s%s", filepath.Base(program), strings.Join(args, " "), p.Err.String(), p.Out.String())
		}
	})
	return p
}

// Code waits for the end, and returns the exit code.
func (p *Process) Code() int {
	p.t.Helper()
	err := p.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return 0
}

// Kubeconfig writes a file with the access to an API server by client certificates, and returns its path. namespace is
// that of its context.
func Kubeconfig(t *testing.T, config *rest.Config, namespace string) string {
	t.Helper()
	server := config.Host
	if !strings.HasPrefix(server, "https://") {
		server = "https://" + server
	}
	content := clientcmdapi.NewConfig()
	content.Clusters["c"] = &clientcmdapi.Cluster{
		Server:                   server,
		CertificateAuthorityData: config.CAData,
		TLSServerName:            config.ServerName,
	}
	content.AuthInfos["u"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData,
		ClientKeyData:         config.KeyData,
		Impersonate:           config.Impersonate.UserName,
	}
	content.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: namespace}
	content.CurrentContext = "x"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	err := clientcmd.WriteToFile(*content, file)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

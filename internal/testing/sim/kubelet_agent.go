package sim

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/plan"
)

// agentConfig is what `redquake agent` reads from its files.
func (k *Kubelet) agentConfig(root string, index int) (agent.Config, error) {
	text, err := os.ReadFile(root + "/etc/redquake/plan/plan.json")
	if err != nil {
		return agent.Config{}, err
	}
	here := strings.ReplaceAll(string(text), `"/etc/redquake/`, `"`+root+`/etc/redquake/`)
	for name, address := range k.Hosts {
		here = strings.ReplaceAll(here, `"`+name+`"`, `"`+address+`"`)
	}
	plan := &plan.Plan{}
	if err := json.Unmarshal([]byte(here), plan); err != nil {
		return agent.Config{}, err
	}
	credentials := agent.Credentials{}
	var token []byte
	for key, into := range map[string]*[]byte{
		agent.KeyCertificate: &credentials.CertificatePEM,
		agent.KeyPrivateKey:  &credentials.PrivateKeyPEM,
		agent.KeyToken:       &token,
	} {
		if *into, err = os.ReadFile(filepath.Join(root, "etc/redquake/agent", key)); err != nil {
			return agent.Config{}, err
		}
	}
	certificate, err := credentials.Certificate()
	if err != nil {
		return agent.Config{}, err
	}
	runner, err := k.Load(plan, index)
	if err != nil {
		return agent.Config{}, err
	}
	return agent.Config{
		Plan:        plan,
		Pod:         index,
		Runner:      runner,
		Token:       string(token),
		Certificate: certificate,
		Drain:       time.Second,
		Logger:      slog.New(slog.DiscardHandler),
	}, nil
}

func (k *Kubelet) setEnded(ctx context.Context, pod *corev1.Pod, err error) error {
	ended := &corev1.ContainerStateTerminated{Reason: "Completed"}
	pod.Status.Phase = corev1.PodSucceeded
	if err != nil {
		pod.Status.Phase = corev1.PodFailed
		ended.Reason, ended.ExitCode, ended.Message = "Error", 1, err.Error()
	}
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: ended}
	pod.Status.ContainerStatuses[0].Ready = false
	return k.Client.Status().Update(ctx, pod)
}

// cuttableListener can end as a killed process does: every connection breaks.
type cuttableListener struct {
	net.Listener
	mu   sync.Mutex
	open []net.Conn
}

func (l *cuttableListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		l.open = append(l.open, c)
		l.mu.Unlock()
	}
	return c, err
}

func (l *cuttableListener) cut() {
	l.Listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		c.Close()
	}
}

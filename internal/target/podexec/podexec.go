// Package podexec runs programs in the containers of pods, through the API server and the kubelet:
// it works while the network of the pod is cut off.
package podexec

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
)

// longestOutput is how many bytes of a program's output are kept.
const longestOutput = 64 << 10

// Runner runs programs in the pods of a cluster.
type Runner struct {
	config *rest.Config
	client rest.Interface
}

// New returns a Runner for a cluster.
func New(config *rest.Config) (*Runner, error) {
	of := rest.CopyConfig(config)
	of.GroupVersion = &corev1.SchemeGroupVersion
	of.APIPath = "/api"
	of.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(of)
	if err != nil {
		return nil, fmt.Errorf("create the client of pods/exec: %w", err)
	}
	return &Runner{config: of, client: client}, nil
}

// Run runs a program until it ends, at most until ctx does, and returns its output. Where the
// program fails, the error has what it wrote to its error output.
func (r *Runner) Run(
	ctx context.Context, pod types.NamespacedName, container string, command ...string,
) ([]byte, error) {
	url := r.client.Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{
			Container: container,
			Command:   command,
			Stdout:    true,
			Stderr:    true,
		}, runtime.NewParameterCodec(scheme.Scheme)).URL()
	// As kubectl does: API servers and proxies on the way may know only the older protocol.
	newer, err := remotecommand.NewWebSocketExecutor(r.config, http.MethodGet, url.String())
	if err != nil {
		return nil, fmt.Errorf("connect to pods/exec: %w", err)
	}
	older, err := remotecommand.NewSPDYExecutor(r.config, http.MethodPost, url)
	if err != nil {
		return nil, fmt.Errorf("connect to pods/exec: %w", err)
	}
	executor, err := remotecommand.NewFallbackExecutor(newer, older, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return nil, fmt.Errorf("connect to pods/exec: %w", err)
	}
	var stdout, stderr limited
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		if said := strings.TrimSpace(stderr.String()); said != "" {
			err = fmt.Errorf("%w: %s", err, said)
		}
		return nil, fmt.Errorf("run %s in container %s of pod %s: %w", command[0], container, pod.Name, err)
	}
	return stdout.Bytes(), nil
}

// limited keeps the first bytes of what is written: the container may be anybody's.
type limited struct{ bytes.Buffer }

func (l *limited) Write(b []byte) (int, error) {
	_, _ = l.Buffer.Write(b[:min(len(b), max(0, longestOutput-l.Len()))]) // it returns no error
	return len(b), nil
}

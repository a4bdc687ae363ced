package netfaulttest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// ServeExec serves a kubelet's endpoint by which a real API server runs programs in these pods:
// /exec/NAMESPACE/POD/CONTAINER?command=... It returns where a node has it, until the process ends.
func (p *Pods) ServeExec() (at corev1.NodeStatus, err error) {
	served, err := url.Parse(httptest.NewTLSServer(http.HandlerFunc(p.serveExec)).URL)
	if err != nil {
		return at, err
	}
	port, err := strconv.ParseInt(served.Port(), 10, 32)
	at.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: served.Hostname()}}
	at.DaemonEndpoints.KubeletEndpoint.Port = int32(port)
	return at, err
}

func (p *Pods) serveExec(w http.ResponseWriter, r *http.Request) {
	path := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	options, err := remotecommand.NewOptions(r)
	if err != nil || len(path) != 4 || path[0] != "exec" {
		http.Error(w, "not a request for exec", http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(w, r, inNamespace{p, path[1]}, path[2], "", path[3], r.URL.Query()["command"],
		options, time.Minute, time.Minute, remotecommand.SupportedStreamingProtocols)
}

// inNamespace runs programs in the pods of a namespace.
type inNamespace struct {
	*Pods
	namespace string
}

// ExecInContainer implements remotecommand.Executor.
func (n inNamespace) ExecInContainer(ctx context.Context, pod, _, container string, command []string,
	_ io.Reader, stdout, stderr io.WriteCloser, _ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration,
) error {
	output, err := n.Run(ctx, types.NamespacedName{Namespace: n.namespace, Name: pod}, container, command...)
	if err != nil {
		_, _ = io.WriteString(stderr, err.Error())
		return err
	}
	_, err = stdout.Write(output)
	return errors.Join(err, stdout.Close(), stderr.Close())
}

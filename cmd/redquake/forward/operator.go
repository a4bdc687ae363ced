package forward

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os/exec"
	"runtime"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/kube"
)

// leaseName is that of the Lease by which managers elect a leader.
const leaseName = "redquake.redquake.dev"

// portName is that of the dashboard's port, in the manager's pod.
const portName = "dashboard"

// Operator finds the manager.
type Operator struct {
	Namespace string // of the manager

	config *rest.Config
	client *rest.RESTClient
}

// NewOperator returns an Operator of the cluster that a kubeconfig names.
func NewOperator(config *rest.Config, namespace string) (*Operator, error) {
	client, err := kube.NewJSON(config)
	if err != nil {
		return nil, err
	}
	return &Operator{
		Namespace: namespace,
		config:    config,
		client:    client,
	}, nil
}

// Manager is a manager's pod, and the port of its dashboard.
type Manager struct {
	Namespace, Pod string
	Port           int32
}

// address is where the API server forwards ports of the pod.
func (m Manager) address(config *rest.Config) (*url.URL, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the address of the API server: %w", err)
	}
	return base.JoinPath("/api/v1/namespaces", m.Namespace, "pods", m.Pod, "portforward"), nil
}

func (o *Operator) get(ctx context.Context, into any, path ...string) error {
	data, err := o.client.Get().AbsPath(path...).Do(ctx).Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// Leader is the manager that leads; of one without an election, the one that runs.
func (o *Operator) Leader(ctx context.Context) (Manager, error) {
	var lease coordinationv1.Lease
	err := o.get(ctx, &lease, "/apis/coordination.k8s.io/v1/namespaces", o.Namespace, "leases",
		leaseName)
	holder := ""
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return Manager{}, fmt.Errorf("read the Lease %s of namespace %s: %w", leaseName, o.Namespace, err)
	case lease.Spec.HolderIdentity != nil:
		holder = *lease.Spec.HolderIdentity
	}
	if i := strings.LastIndex(holder, "_"); i > 0 { // the pod's name and a UID
		var pod corev1.Pod
		err := o.get(ctx, &pod, "/api/v1/namespaces", o.Namespace, "pods", holder[:i])
		if err == nil {
			return o.manager(&pod)
		} else if !apierrors.IsNotFound(err) {
			return Manager{}, fmt.Errorf("read pod %s of namespace %s: %w", holder[:i], o.Namespace, err)
		}
	}
	return o.running(ctx)
}

// running is a manager that runs: nobody leads at the moment, or there is no election.
func (o *Operator) running(ctx context.Context) (Manager, error) {
	data, err := o.client.Get().AbsPath("/api/v1/namespaces", o.Namespace, "pods").
		Param("labelSelector", v1alpha1.LabelName+"=redquake,"+v1alpha1.LabelComponent+"=manager").
		Do(ctx).
		Raw()
	if err != nil {
		return Manager{}, fmt.Errorf("list the pods of namespace %s: %w", o.Namespace, err)
	}
	var list corev1.PodList
	if err := json.Unmarshal(data, &list); err != nil {
		return Manager{}, fmt.Errorf("decode the pods of namespace %s: %w", o.Namespace, err)
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			return o.manager(pod)
		}
	}
	return Manager{}, fmt.Errorf(
		"no manager of Redquake runs in namespace %s: --operator-namespace names another one",
		o.Namespace)
}

func (o *Operator) manager(pod *corev1.Pod) (Manager, error) {
	for _, c := range pod.Spec.Containers {
		for _, p := range c.Ports {
			if p.Name == portName {
				return Manager{pod.Namespace, pod.Name, p.ContainerPort}, nil
			}
		}
	}
	return Manager{}, fmt.Errorf(
		"pod %s of namespace %s has no port named %s: its manager is of an earlier version, or serves "+
			"no dashboard (--dashboard-bind-address)", pod.Name, pod.Namespace, portName)
}

// OpenBrowser opens an address in the browser of the desktop. An error means that there is none
// that could be started.
func OpenBrowser(ctx context.Context, address string) error {
	command := []string{"xdg-open", address}
	switch runtime.GOOS {
	case "darwin":
		command[0] = "open"
	case "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler", address}
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		return fmt.Errorf("there is no %s", command[0])
	}
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", command[0], err)
	}
	go func() { _ = cmd.Wait() }() // some wait for the browser
	return nil
}

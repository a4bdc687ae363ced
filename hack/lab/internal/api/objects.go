package api

import (
	"context"
	"fmt"
	"net/url"
	"strings"
)

// Condition is a condition of a node or a pod.
type Condition struct {
	Type, Status, Reason, Message string
}

// Node has the fields of a node that the lab uses.
type Node struct {
	Metadata struct{ Name string }
	Spec     struct {
		Unschedulable bool
		Taints        []struct{ Key, Effect string }
	}
	Status struct {
		Conditions  []Condition
		NodeInfo    struct{ KubeletVersion string }
		Allocatable map[string]string
	}
}

// Ready reports whether kubelet reported ready and still renews its lease.
func (n Node) Ready() bool {
	return conditionTrue(n.Status.Conditions, "Ready")
}

// Pod has the fields of a pod that the lab uses.
type Pod struct {
	Metadata struct {
		Namespace, Name, UID string
		DeletionTimestamp    string
	}
	Spec   struct{ NodeName string }
	Status struct {
		Phase, Reason, PodIP string
		Conditions           []Condition
		ContainerStatuses    []struct {
			Name         string
			RestartCount int
			State        struct {
				Waiting *struct{ Reason, Message string }
			}
		}
	}
}

// Healthy reports whether the pod is ready or has succeeded.
func (p Pod) Healthy() bool {
	return p.Status.Phase == "Succeeded" || conditionTrue(p.Status.Conditions, "Ready")
}

// Problem returns a short text why the pod is not healthy.
func (p Pod) Problem() string {
	words := []string{p.Status.Phase}
	if p.Metadata.DeletionTimestamp != "" {
		words = append(words, "Terminating")
	}
	if p.Status.Reason != "" {
		words = append(words, p.Status.Reason)
	}
	for _, c := range p.Status.Conditions {
		if c.Type == "PodScheduled" && c.Status == "False" {
			words = append(words, c.Reason+":", c.Message)
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Waiting != nil {
			words = append(words, c.Name+":", c.State.Waiting.Reason)
		}
	}
	return strings.Join(words, " ")
}

func conditionTrue(conditions []Condition, kind string) bool {
	for _, c := range conditions {
		if c.Type == kind {
			return c.Status == "True"
		}
	}
	return false
}

// Nodes lists all nodes.
func (c *Client) Nodes(ctx context.Context) ([]Node, error) {
	var list struct{ Items []Node }
	err := c.Get(ctx, "/api/v1/nodes", &list)
	return list.Items, err
}

// Pods lists all pods.
func (c *Client) Pods(ctx context.Context) ([]Pod, error) {
	var list struct{ Items []Pod }
	err := c.Get(ctx, "/api/v1/pods", &list)
	return list.Items, err
}

// Pod returns one pod.
func (c *Client) Pod(ctx context.Context, namespace, name string) (Pod, error) {
	var pod Pod
	err := c.Get(ctx, fmt.Sprintf("/api/v1/namespaces/%s/pods/%s", url.PathEscape(namespace),
		url.PathEscape(name)), &pod)
	return pod, err
}

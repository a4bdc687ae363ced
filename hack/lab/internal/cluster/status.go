package cluster

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/redquake/redquake/hack/lab/internal/api"
	"github.com/redquake/redquake/hack/lab/internal/config"
	"github.com/redquake/redquake/hack/lab/internal/process"
	"github.com/redquake/redquake/hack/lab/internal/settings"
)

// Status writes the lab's state and returns its problems; none means healthy. Pods outside
// kube-system are shown, but their problems, often intended, do not make the lab unhealthy.
func (l *Lab) Status(ctx context.Context, out io.Writer) (problems []string) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	defer w.Flush()
	problem := func(format string, args ...any) {
		problems = append(problems, fmt.Sprintf(format, args...))
	}

	fmt.Fprintf(w, "DAEMON\tSTATE\tLOG\n")
	for _, d := range l.daemons() {
		state := "down"
		if id, err := process.Load(l.State.Record(d.Name), settings.CgroupRoot); err == nil {
			state = fmt.Sprintf("running (%d)", id.PID)
		} else {
			problem("%s is down", d.Name)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", d.Name, state, l.State.Log(d.Name))
	}
	for _, n := range l.nodes() {
		states, err := n.Daemons()
		if err != nil {
			problem("%s is off", n.Node.Name)
			fmt.Fprintf(w, "%s\toff\t%s\n", n.Node.Name, l.State.Log("init-"+n.Node.Name))
			continue
		}
		for _, d := range config.OnNode(l.State, n.Node) {
			name := d.Name + "-" + n.Node.Name
			if states[d.Name] != "running" {
				problem("%s of %s is %s", d.Name, n.Node.Name, states[d.Name])
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", name, states[d.Name], l.State.Log(name))
		}
	}
	client, err := l.client()
	if err == nil {
		err = l.clusterStatus(ctx, client, w, problem)
	}
	if err != nil {
		problem("%v", err)
	}
	return problems
}

func (l *Lab) clusterStatus(
	ctx context.Context, client *api.Client, w io.Writer, problem func(string, ...any),
) error {
	nodes, err := client.Nodes(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\nNODE\tREADY\tVERSION\tCPU\tMEMORY\tTAINTS\n")
	seen := map[string]bool{}
	for _, n := range nodes {
		seen[n.Metadata.Name] = true
		var taints []string
		for _, t := range n.Spec.Taints {
			taints = append(taints, t.Key+":"+t.Effect)
		}
		if !n.Ready() {
			problem("node %s is not Ready", n.Metadata.Name)
		}
		fmt.Fprintf(w, "%s\t%v\t%s\t%s\t%s\t%s\n", n.Metadata.Name, n.Ready(),
			n.Status.NodeInfo.KubeletVersion,
			n.Status.Allocatable["cpu"], n.Status.Allocatable["memory"], strings.Join(taints, " "))
	}
	for _, n := range settings.Nodes {
		if !seen[n.Name] {
			problem("node %s has not registered", n.Name)
		}
	}
	pods, err := client.Pods(ctx)
	if err != nil {
		return err
	}
	healthy := 0
	var troubled []api.Pod
	for _, p := range pods {
		if p.Healthy() {
			healthy++
			continue
		}
		troubled = append(troubled, p)
		if p.Metadata.Namespace == "kube-system" {
			problem("pod kube-system/%s: %s", p.Metadata.Name, p.Problem())
		}
	}
	fmt.Fprintf(w, "\nPODS\t%d of %d healthy\n", healthy, len(pods))
	for _, p := range troubled {
		fmt.Fprintf(w, "%s/%s\t%s\t%s\n", p.Metadata.Namespace, p.Metadata.Name, p.Spec.NodeName,
			p.Problem())
	}
	return nil
}

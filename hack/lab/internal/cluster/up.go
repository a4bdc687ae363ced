package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/redquake/redquake/hack/lab/internal/api"
	"github.com/redquake/redquake/hack/lab/internal/config"
	"github.com/redquake/redquake/hack/lab/internal/files"
	"github.com/redquake/redquake/hack/lab/internal/netns"
	"github.com/redquake/redquake/hack/lab/internal/node"
	"github.com/redquake/redquake/hack/lab/internal/pki"
	"github.com/redquake/redquake/hack/lab/internal/settings"
)

// Up boots the lab with the binaries in bin, or starts its missing parts. archives creates the
// images that every node gets, and is called while the API server starts.
func (l *Lab) Up(ctx context.Context, bin string, archives func() ([]string, error)) error {
	started := time.Now()
	step := func(what string) {
		fmt.Fprintf(l.Progress, "%5.1f s  %s\n", time.Since(started).Seconds(), what)
	}
	if err := l.prepare(bin); err != nil {
		return err
	}
	step("certificates and network")
	running := config.Store(l.State)
	for _, d := range running {
		if err := l.start(d); err != nil {
			return err
		}
	}
	images := make(chan error, 1)
	go func() { images <- l.prepareNodes(archives) }() // they pull from the registry
	client, err := l.client()
	if err != nil {
		return err
	}
	if err := l.wait(ctx, "the API server", running, func() error {
		return client.Get(ctx, "/readyz",
			nil)
	}); err != nil {
		return err
	}
	step("API server")
	for _, d := range config.Control(l.State) {
		if err := l.start(d); err != nil {
			return err
		}
		running = append(running, d)
	}
	if err := l.apply(ctx); err != nil {
		return err
	}
	if err := <-images; err != nil {
		return err
	}
	step("nodes on, images loaded")
	if err := l.wait(ctx, "the nodes to be Ready", running, func() error {
		return nodesReady(ctx,
			client)
	}); err != nil {
		return err
	}
	step("nodes Ready")
	if err := l.wait(ctx, "the cluster's DNS and service accounts", running, func() error {
		return systemReady(ctx, client)
	}); err != nil {
		return err
	}
	step("cluster DNS; the lab is up")
	return nil
}

// prepare creates the daemons' files and the network.
func (l *Lab) prepare(bin string) error {
	if err := l.prepareState(); err != nil {
		return err
	}
	if err := l.killStrays(); err != nil {
		return err
	}
	if err := files.LinkAtomic(bin, l.State.Bin()); err != nil {
		return err
	}
	if err := pki.Create(l.State.PKI(), config.Certificates()); err != nil {
		return fmt.Errorf("making certificates: %w", err)
	}
	for _, user := range config.Users() {
		if err := pki.WriteKubeconfig(l.State.PKI(), user, config.Server); err != nil {
			return err
		}
	}
	if err := l.setUpNetwork(); err != nil {
		return err
	}
	for _, dir := range settings.PrivateDirs { // nodes mount their own over them
		if err := l.createDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// prepareNodes switches both nodes on and loads the images.
func (l *Lab) prepareNodes(archives func() ([]string, error)) error {
	reserved, err := reservedMemory()
	if err != nil {
		return err
	}
	made := make(chan error, 1)
	var paths []string
	go func() {
		var err error
		paths, err = archives()
		made <- err
	}()
	nodes := l.nodes()
	on := make(chan error, len(nodes))
	for _, n := range nodes {
		go func() { on <- n.Start(reserved) }()
	}
	problem := <-made
	for range nodes {
		problem = errors.Join(problem, <-on)
	}
	if problem != nil {
		return problem
	}
	return l.loadBase(paths)
}

// apply brings the lab's own objects into the cluster.
func (l *Lab) apply(ctx context.Context) error {
	if err := files.WriteAtomic(l.State.Manifests(), config.BaseManifests(), 0o644); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(l.State.Bin(), "kubectl"), "apply", "--filename",
		l.State.Manifests())
	cmd.Env = append(os.Environ(), "KUBECONFIG="+l.State.Kubeconfig("admin"),
		"KUBECACHEDIR="+l.State.KubectlCache())
	var out []byte
	err := netns.Do(settings.NetNS, func() (err error) { out, err = cmd.CombinedOutput(); return err })
	if err != nil {
		return fmt.Errorf("applying %s: %w\n%s", l.State.Manifests(), err, out)
	}
	return nil
}

// wait calls ready until it returns no error. It gives up when a daemon ends, for then it may wait
// for ever.
func (l *Lab) wait(
	ctx context.Context, what string, running []config.Daemon, ready func() error,
) error {
	const patience = 10 * time.Minute // beside other work, a boot takes several times as long
	deadline := time.Now().Add(patience)
	for {
		err := ready()
		if err == nil {
			return nil
		}
		if daemonErr := l.checkDaemons(running); daemonErr != nil {
			return fmt.Errorf("waiting for %s: %w", what, daemonErr)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waited %s for %s: %w; logs are in %s", patience, what, err,
				filepath.Dir(l.State.Log("x")))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func nodesReady(ctx context.Context, client *api.Client) error {
	nodes, err := client.Nodes(ctx)
	if err != nil {
		return err
	}
	ready := map[string]bool{}
	for _, n := range nodes {
		ready[n.Metadata.Name] = n.Ready()
	}
	var missing []string
	for _, n := range settings.Nodes {
		if !ready[n.Name] {
			missing = append(missing, n.Name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("not Ready: %s", strings.Join(missing, ", "))
	}
	return nil
}

// systemReady checks what pods need from the first moment: DNS, and the account they run as.
func systemReady(ctx context.Context, client *api.Client) error {
	if err := client.Get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", nil); err != nil {
		return err
	}
	var dns struct {
		Metadata struct{ Generation int }
		Status   struct{ ObservedGeneration, ReadyReplicas, UpdatedReplicas int }
	}
	if err := client.Get(ctx, "/apis/apps/v1/namespaces/kube-system/deployments/coredns",
		&dns); err != nil {
		return err
	}
	if dns.Status.ReadyReplicas < len(settings.Nodes) ||
		dns.Status.ObservedGeneration < dns.Metadata.Generation {
		return fmt.Errorf("%d of %d replicas of coredns are ready", dns.Status.ReadyReplicas,
			len(settings.Nodes))
	}
	return nil
}

// StartNode switches one node on again.
func (l *Lab) StartNode(n node.Host) error {
	reserved, err := reservedMemory()
	if err != nil {
		return err
	}
	return n.Start(reserved)
}

// reservedMemory is withheld from pods on each node, so that the two together promise no more than
// the machine has.
func reservedMemory() (string, error) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return "", err
	}
	return reserve(string(data))
}

func reserve(meminfo string) (string, error) {
	var kib int64
	for line := range strings.Lines(meminfo) {
		if n, _ := fmt.Sscanf(line, "MemTotal: %d kB", &kib); n == 1 {
			return fmt.Sprintf("%dMi", kib/2/1024), nil
		}
	}
	return "", errors.New("/proc/meminfo has no MemTotal")
}

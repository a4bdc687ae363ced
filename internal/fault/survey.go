package fault

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/redquake/redquake/internal/redis"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis/topology"
)

// noShard is the shard of servers that are no cluster.
const noShard = -1

// server is one running pod of a target, and what its server said.
type server struct {
	pod   *corev1.Pod
	said  topology.Server
	err   error // it did not answer
	shard int   // of a cluster, counted from 0 by lowest slot; noShard outside of one

	sentinelBeside bool // in a container of the same pod, as some charts have it
}

// survey asks every running pod of a target who it is. It returns a Problem where there is none.
func survey(ctx context.Context, around Surroundings, target *v1alpha1.RedisTarget) ([]server, error) {
	pods, err := Pods(ctx, around, target)
	if err != nil {
		return nil, err
	}
	found := make([]server, len(pods))
	asking, askCtx := errgroup.WithContext(ctx)
	asking.SetLimit(16)
	for i := range pods {
		found[i] = server{pod: &pods[i], shard: noShard}
		asking.Go(func() error {
			found[i].said, found[i].err = around.Servers.Ask(askCtx, Address(&pods[i]), around.Login)
			return nil
		})
	}
	_ = asking.Wait() // it has no errors: each server has its own
	return found, assignShards(ctx, around, found)
}

// sentinelPort is where sentinels listen unless they are told otherwise.
const sentinelPort = "26379"

// sentinelsBeside looks for sentinels in the pods of the servers of a target that has any.
func sentinelsBeside(ctx context.Context, around Surroundings, found []server) {
	if len(around.Sentinels) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	var asking errgroup.Group
	asking.SetLimit(32)
	for i := range found {
		if found[i].said.Role == topology.Sentinel {
			continue
		}
		asking.Go(func() error {
			found[i].sentinelBeside = slices.ContainsFunc(sentinelPorts(around, found[i].pod), func(port string) bool {
				return around.isSentinel(ctx, net.JoinHostPort(found[i].pod.Status.PodIP, port))
			})
			return nil
		})
	}
	_ = asking.Wait() // who does not answer is no sentinel that could be lost
}

// sentinelPorts are the ports at which a sentinel of the pod may listen: a Service may have another than its pods.
func sentinelPorts(around Surroundings, pod *corev1.Pod) []string {
	ports := []string{sentinelPort}
	add := func(port string) {
		if !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	if _, port, err := net.SplitHostPort(around.Sentinels[0]); err == nil {
		add(port)
	}
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if strings.Contains(port.Name, "sentinel") {
				add(strconv.Itoa(int(port.ContainerPort)))
			}
		}
	}
	return ports
}

// isSentinel says whether a sentinel listens at an address. Who refuses the user knows the command.
func (s Surroundings) isSentinel(ctx context.Context, address string) bool {
	_, err := s.Servers.Do(ctx, address, s.SentinelLogin, "SENTINEL", "MYID")
	return err == nil || redis.IsReply(err) && slices.ContainsFunc([]string{"NOPERM", "NOAUTH", "WRONGPASS"}, func(refusal string) bool {
		return strings.Contains(err.Error(), refusal)
	})
}

// assignShards asks the first node of a cluster that answers which nodes hold the same slots.
func assignShards(ctx context.Context, around Surroundings, found []server) error {
	i := slices.IndexFunc(found, func(s server) bool { return s.err == nil && s.said.Mode == "cluster" })
	if i < 0 {
		return nil
	}
	address := Address(found[i].pod)
	reply, err := around.Servers.Do(ctx, address, around.Login, "CLUSTER", "NODES")
	if err != nil {
		return refused(err, around, address, "CLUSTER", "NODES")
	}
	text, _ := reply.(string)
	view, err := topology.ParseNodes(text, address)
	if err != nil {
		return err
	}
	for shard, group := range topology.InOrder(view) {
		for _, node := range group.Nodes {
			for k := range found {
				if Address(found[k].pod) == node.Address {
					found[k].shard = shard
				}
			}
		}
	}
	return nil
}

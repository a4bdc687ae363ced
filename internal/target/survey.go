package target

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/redquake/redquake/internal/redis"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/internal/redis/topology"
)

// NoShard is the shard of servers that are no cluster.
const NoShard = -1

// Server is one running pod of a target, with the state of its server.
type Server struct {
	Pod     *corev1.Pod
	Address string
	State   topology.Server
	Err     error // it did not answer
	Shard   int   // of a cluster, counted from 0 by lowest slot; NoShard outside of one

	SentinelBeside bool // a sentinel runs in another container of the pod
}

// Survey queries the server in every running pod of a target. It returns a Problem where there is none.
func (r Redis) Survey(ctx context.Context) ([]Server, error) {
	pods, err := r.Pods(ctx)
	if err != nil {
		return nil, err
	}
	found := make([]Server, len(pods))
	asking, askCtx := errgroup.WithContext(ctx)
	asking.SetLimit(16)
	for i := range pods {
		found[i] = Server{Pod: &pods[i], Address: r.Address(&pods[i]), Shard: NoShard}
		asking.Go(func() error {
			found[i].State, found[i].Err = r.Servers.Ask(askCtx, found[i].Address, r.Login)
			return nil
		})
	}
	_ = asking.Wait() // errors are in Server.Err
	return found, r.assignShards(ctx, found)
}

// sentinelPort is the default port of sentinels.
const sentinelPort = "26379"

// SentinelsBeside looks for sentinels in the pods of the servers of a target that has any.
func (r Redis) SentinelsBeside(ctx context.Context, found []Server) {
	if len(r.Sentinels.Addresses) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, QueryTimeout)
	defer cancel()
	var asking errgroup.Group
	asking.SetLimit(32)
	for i := range found {
		if found[i].State.Role == topology.Sentinel {
			continue
		}
		asking.Go(func() error {
			found[i].SentinelBeside = slices.ContainsFunc(r.Sentinels.portsIn(found[i].Pod), func(port string) bool {
				return r.Sentinels.listensAt(ctx, net.JoinHostPort(found[i].Pod.Status.PodIP, port))
			})
			return nil
		})
	}
	_ = asking.Wait() // a sentinel that does not answer cannot be lost
}

// portsIn are the ports at which a sentinel of the pod may listen: a Service may have another than its pods.
func (s Sentinels) portsIn(pod *corev1.Pod) []string {
	ports := []string{sentinelPort}
	add := func(port string) {
		if !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	if _, port, err := net.SplitHostPort(s.Addresses[0]); err == nil {
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

// listensAt reports whether a sentinel listens at an address. A server that refuses the user has the command.
func (s Sentinels) listensAt(ctx context.Context, address string) bool {
	_, err := s.Servers.Do(ctx, address, s.Login, "SENTINEL", "MYID")
	return err == nil || redis.IsReply(err) && slices.ContainsFunc([]string{"NOPERM", "NOAUTH", "WRONGPASS"}, func(refusal string) bool {
		return strings.Contains(err.Error(), refusal)
	})
}

// assignShards sets the shards of the nodes of a cluster, in the view of the first node that answers.
func (r Redis) assignShards(ctx context.Context, found []Server) error {
	i := slices.IndexFunc(found, func(s Server) bool { return s.Err == nil && s.State.Mode == "cluster" })
	if i < 0 {
		return nil
	}
	address := found[i].Address
	reply, err := r.Servers.Do(ctx, address, r.Login, "CLUSTER", "NODES")
	if err != nil {
		return r.Refusal(err, address, "CLUSTER", "NODES")
	}
	text, _ := reply.(string)
	view, err := topology.ParseNodes(text, address)
	if err != nil {
		return fmt.Errorf("parse the reply from %s: %w", address, err)
	}
	for shard, group := range topology.InOrder(view) {
		for _, node := range group.Nodes {
			for k := range found {
				if found[k].Address == node.Address {
					found[k].Shard = shard
				}
			}
		}
	}
	return nil
}

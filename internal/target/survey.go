package target

import (
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
)

// NoShard is the shard of servers that are no cluster.
const NoShard = -1

// SurveyTimeout limits the queries of a survey, however many servers do not answer.
const SurveyTimeout = 3 * time.Second

// surveyed is how many servers are queried at a time.
const surveyed = 256

// Server is one running pod of a target, with the state of its server.
type Server struct {
	Pod     *corev1.Pod
	Address string
	State   topology.Server
	Err     error // it did not answer
	Shard   int   // of a cluster, counted from 0 by lowest slot; NoShard outside of one

	SentinelBeside bool // a sentinel runs in another container of the pod

	node       string // its ID in a cluster; "" = unknown
	sentinelAt string // the address of the sentinel beside it
}

// Census is the servers of a target, and the copies of its data that none of them has.
type Census struct {
	Servers   []Server
	Missing   []Missing
	InCluster bool // the servers are nodes of a cluster: those without a shard have no data
	Voters    []Voter

	unselected []corev1.Pod // that run, and belong to a StatefulSet of which the target selects others
}

// Missing is a copy of the data that exists or should exist, and is in no running pod of the
// target.
type Missing struct {
	Name  string // of the pod, or the node of the cluster
	Why   string
	Shard int

	node, address string // of a cluster
}

// Voter is a primary of a cluster: the majority of them elects the replacement of one that fails.
type Voter struct {
	Name    string // of its pod, else of its node
	Address string
	Answers bool // it does, or the other nodes see it
}

// Survey queries the server in every running pod of a target, within SurveyTimeout. It returns a
// Problem where there is none.
func (r Redis) Survey(ctx context.Context) ([]Server, error) {
	census, err := r.Census(ctx)
	return census.Servers, err
}

// Census is Survey with the copies that no running pod has: of pods that are pending or
// terminating, of a StatefulSet that lacks pods, of nodes that only the cluster lists.
func (r Redis) Census(ctx context.Context) (Census, error) {
	all, err := r.AllPods(ctx)
	if err != nil {
		return Census{}, err
	}
	pods, err := r.Running(all)
	if err != nil {
		return Census{}, err
	}
	c := Census{Servers: make([]Server, len(pods))}
	within, cancel := context.WithTimeout(ctx, SurveyTimeout)
	defer cancel()
	r.askAll(within, pods, c.Servers)
	markSentinels(c.Servers)
	if c.InCluster, err = r.assignShards(within, &c); err != nil {
		return c, err
	}
	if !c.InCluster {
		return c, r.missingPods(ctx, all, &c)
	}
	return c, nil
}

// askAll queries all servers. What is left of SurveyTimeout is for the shards.
func (r Redis) askAll(ctx context.Context, pods []corev1.Pod, found []Server) {
	ctx, cancel := context.WithTimeout(ctx, SurveyTimeout-QueryTimeout)
	defer cancel()
	var asking errgroup.Group
	asking.SetLimit(surveyed)
	for i := range pods {
		s := &found[i]
		*s = Server{
			Pod:     &pods[i],
			Address: r.Address(&pods[i]),
			Shard:   NoShard,
		}
		asking.Go(func() error {
			r.ask(ctx, s)
			return nil
		})
	}
	_ = asking.Wait() // errors are in Server.Err
}

func (r Redis) ask(ctx context.Context, s *Server) {
	s.State, s.Err = r.Servers.Ask(ctx, s.Address, r.Login)
	if s.Err == nil && s.State.Mode == "cluster" {
		// without it, the address identifies the node
		id, _ := r.Servers.Do(ctx, s.Address, r.Login, "CLUSTER", "MYID")
		s.node, _ = id.(string)
	}
}

// sentinelPort is the default port of sentinels.
const sentinelPort = "26379"

// SentinelsBeside looks for sentinels in the pods of some servers, whether the target has sentinels
// of its own or not.
func (r Redis) SentinelsBeside(ctx context.Context, found []Server, of func(*Server) bool) {
	ctx, cancel := context.WithTimeout(ctx, QueryTimeout)
	defer cancel()
	sentinels := r.besideLogin()
	var asking errgroup.Group
	asking.SetLimit(surveyed)
	for i := range found {
		s := &found[i]
		if s.State.Role == topology.Sentinel || !of(s) {
			continue
		}
		asking.Go(func() error {
			s.SentinelBeside = slices.ContainsFunc(sentinels.portsIn(s.Pod), func(port string) bool {
				s.sentinelAt = net.JoinHostPort(s.Pod.Status.PodIP, port)
				return sentinels.listensAt(ctx, s.sentinelAt)
			})
			return nil
		})
	}
	_ = asking.Wait() // a sentinel that does not answer cannot be lost
}

// besideLogin is how sentinels beside servers are queried: as those of the target, else without a
// password, since Redis' own is not theirs.
func (r Redis) besideLogin() Sentinels {
	if len(r.Sentinels.Addresses) > 0 {
		return r.Sentinels
	}
	return Sentinels{Servers: r.Servers, Login: redis.Login{
		Timeout: r.Login.Timeout,
		TLS:     r.Login.TLS,
		Trust:   r.Login.Trust,
	}}
}

// SentinelsAmong is the sentinels of the target, else those that SentinelsBeside found.
func (r Redis) SentinelsAmong(found []Server) Sentinels {
	s := r.besideLogin()
	if len(s.Addresses) > 0 {
		return s
	}
	for i := range found {
		if found[i].SentinelBeside {
			s.Addresses = append(s.Addresses, found[i].sentinelAt)
		}
	}
	return s
}

// portsIn are the ports at which a sentinel of the pod may listen: a Service may have another than
// its pods.
func (s Sentinels) portsIn(pod *corev1.Pod) []string {
	ports := []string{sentinelPort}
	add := func(port string) {
		if !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	if len(s.Addresses) > 0 {
		_, port, err := net.SplitHostPort(s.Addresses[0])
		if err == nil {
			add(port)
		}
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

// listensAt reports whether a sentinel listens at an address. A server that refuses the user has
// the command.
func (s Sentinels) listensAt(ctx context.Context, address string) bool {
	_, err := s.Servers.Do(ctx, address, s.Login, "SENTINEL", "MYID")
	return err == nil || redis.IsReply(err) &&
		slices.ContainsFunc([]string{"NOPERM", "NOAUTH", "WRONGPASS"}, func(refusal string) bool {
			return strings.Contains(err.Error(), refusal)
		})
}

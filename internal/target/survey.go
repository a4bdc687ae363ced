package target

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target/confine"
	"github.com/redquake/redquake/internal/target/sentinel"
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
	Pods      []corev1.Pod // in whatever state, those of other programs among them
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
	c := Census{Pods: all, Servers: make([]Server, len(pods))}
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
	ctx, cancel := context.WithTimeout(ctx, SurveyTimeout-confine.QueryTimeout)
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

// SentinelsBeside looks for sentinels in the pods of some servers, whether the target has sentinels
// of its own or not.
func (r Redis) SentinelsBeside(ctx context.Context, found []Server, of func(*Server) bool) {
	ctx, cancel := context.WithTimeout(ctx, confine.QueryTimeout)
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
			s.SentinelBeside = slices.ContainsFunc(sentinels.PortsIn(s.Pod), func(port string) bool {
				s.sentinelAt = net.JoinHostPort(s.Pod.Status.PodIP, port)
				return sentinels.ListensAt(ctx, s.sentinelAt)
			})
			return nil
		})
	}
	_ = asking.Wait() // a sentinel that does not answer cannot be lost
}

// SentinelsApart looks for sentinels in pods of which none is a server that was found: it returns the
// pods' names by the sentinels' IDs. One that does not tell its ID is not among them.
func (r Redis) SentinelsApart(ctx context.Context, pods []corev1.Pod, found []Server) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, confine.QueryTimeout)
	defer cancel()
	sentinels := r.besideLogin()
	podAt := map[string]string{} // by address; "" = of a server that was found
	for i := range pods {
		for _, port := range sentinels.PortsIn(&pods[i]) {
			podAt[net.JoinHostPort(pods[i].Status.PodIP, port)] = pods[i].Name
		}
	}
	for i := range found {
		switch one := &found[i]; {
		case one.SentinelBeside:
			podAt[one.sentinelAt] = ""
		case one.State.Role == topology.Sentinel:
			podAt[one.Address] = ""
		}
	}
	var mu sync.Mutex
	podsOf := map[string][]string{} // by ID
	var asking errgroup.Group
	asking.SetLimit(surveyed)
	for address, pod := range podAt {
		asking.Go(func() error {
			if id, err := sentinels.IDAt(ctx, address); err == nil {
				mu.Lock()
				defer mu.Unlock()
				podsOf[id] = append(podsOf[id], pod)
			}
			return nil // without an answer there is none
		})
	}
	_ = asking.Wait()
	apart := map[string]string{}
	for id, pods := range podsOf {
		if !slices.Contains(pods, "") {
			apart[id] = slices.Min(pods)
		}
	}
	return apart
}

// besideLogin is how sentinels beside servers are queried: as those of the target, else without a
// password, since Redis' own is not theirs.
func (r Redis) besideLogin() sentinel.Set {
	if len(r.Sentinels.Addresses) > 0 {
		return r.Sentinels
	}
	return sentinel.Set{Servers: r.Servers, Login: redis.Login{
		Timeout: r.Login.Timeout,
		TLS:     r.Login.TLS,
		Trust:   r.Login.Trust,
	}}
}

// SentinelsAmong is the sentinels of the target, else those that SentinelsBeside found.
func (r Redis) SentinelsAmong(found []Server) sentinel.Set {
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

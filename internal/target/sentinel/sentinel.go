// Package sentinel is the sentinels of a Redis: where they are, whom they watch, and what most of
// them say.
package sentinel

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target/confine"
	"github.com/redquake/redquake/internal/target/credentials"
)

// Set is the sentinels of a target.
type Set struct {
	Addresses  []string // host:port; empty where there are none
	MasterName string   // under which they watch the primary; "" = the only one that they watch
	Login      redis.Login
	Servers    topology.Servers
}

// DefaultPort is the port of sentinels unless they are configured otherwise.
const DefaultPort = "26379"

// mostSentinels is how many sentinels are asked, whatever they list.
const mostSentinels = 128

// Watcher is one sentinel's view of the primary that it watches.
type Watcher struct {
	topology.Watched
	Address string // the sentinel's
	id      string
	Primary string            // host:port that it gives to clients
	peers   map[string]string // host:port of the other sentinels by ID, those that are down included
}

// Watchers are all sentinels that answered. A majority is relative to all, including those that did
// not.
type Watchers struct {
	Name     string
	Answered []Watcher
	All      int       // that answered or are listed by others
	At       time.Time // of the answers
}

// Of returns the addresses of a target's sentinels and the login to them; zero where there are
// none.
func Of(
	ctx context.Context, secrets client.Reader, namespace string, target *v1alpha1.RedisTarget,
	servers topology.Servers,
) (Set, error) {
	spec := target.Sentinel
	if spec == nil {
		return Set{}, nil
	}
	s := Set{MasterName: spec.MasterName, Servers: servers}
	for _, address := range spec.Addresses {
		qualified, err := qualify(ctx, secrets, namespace, address)
		if err != nil {
			return s, err
		}
		s.Addresses = append(s.Addresses, qualified)
	}
	if spec.Service != nil {
		s.Addresses = []string{
			net.JoinHostPort(spec.Service.Name+"."+namespace+".svc", strconv.Itoa(int(spec.Service.Port))),
		}
	}
	var err error
	s.Login, err = credentials.Login(ctx, secrets, namespace, "spec.target.sentinel", spec.Auth,
		spec.TLS)
	s.Login.Timeout = confine.AskTimeout
	return s, err
}

// qualify returns an address as it resolves in any namespace: a load pod finds SERVICE and
// POD.SERVICE by the search path of its namespace.
func qualify(
	ctx context.Context, services client.Reader, namespace, address string,
) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || net.ParseIP(host) != nil || strings.Count(host, ".") > 1 {
		return address, nil //nolint:nilerr // what is no address fails when it is dialled
	}
	if _, name, ofPod := strings.Cut(host, "."); ofPod { // or SERVICE.NAMESPACE
		err := services.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.Service{})
		if apierrors.IsNotFound(err) {
			return address, nil
		}
		if err != nil {
			return "", fmt.Errorf("read Service %s: %w", name, err)
		}
	}
	return net.JoinHostPort(host+"."+namespace+".svc", port), nil
}

// AskAll queries the given sentinels about a primary, and then those that they list. It is an error
// if none watches it.
func (s Set) AskAll(ctx context.Context, name string) (Watchers, error) {
	w := Watchers{Name: name}
	byID, asked := map[string]Watcher{}, map[string]bool{}
	known := map[string]bool{}
	var failure error
	for next := s.Addresses; len(next) > 0; {
		next = next[:min(len(next), mostSentinels-min(len(asked), mostSentinels))]
		answers, err := s.askSome(ctx, next, name)
		failure = cmp.Or(failure, err)
		for _, address := range next {
			asked[address] = true
		}
		next = nil
		for _, a := range answers {
			byID[a.id], asked[a.Address], known[a.id] = a, true, true
			for id, address := range a.peers {
				known[id] = true
				_, ok := byID[id]
				if !ok && address != "" && !asked[address] && !slices.Contains(next, address) {
					next = append(next, address)
				}
			}
		}
	}
	if len(byID) == 0 {
		return w, s.given(failure)
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		w.Answered = append(w.Answered, byID[id])
	}
	w.All, w.At = len(known), time.Now()
	return w, nil
}

// Has reports whether the sentinel with an ID is among those that answered.
func (w Watchers) Has(id string) bool {
	return slices.ContainsFunc(w.Answered, func(a Watcher) bool { return a.id == id })
}

// askSome queries sentinels in parallel. It returns one of their errors.
func (s Set) askSome(
	ctx context.Context, addresses []string, name string,
) ([]Watcher, error) {
	ctx, cancel := context.WithTimeout(ctx, confine.QueryTimeout)
	defer cancel()
	var mu sync.Mutex
	var asking sync.WaitGroup
	var answers []Watcher
	var failure error
	for _, address := range addresses {
		asking.Go(func() {
			a, err := s.askOne(ctx, address, name)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failure = err
				return
			}
			answers = append(answers, a)
		})
	}
	asking.Wait()
	return answers, failure
}

func (s Set) askOne(ctx context.Context, address, name string) (Watcher, error) {
	id, err := s.IDAt(ctx, address)
	w := Watcher{Address: address, id: id}
	if err != nil {
		return w, err
	}
	said, err := s.Do(ctx, address, "MASTER", name)
	if err != nil {
		return w, s.UnknownName(err, name)
	}
	if w.Watched, err = topology.ParseWatched(said); err != nil {
		return w, fmt.Errorf("parse the reply from %s: %w", address, err)
	}
	primary, err := s.Do(ctx, address, "GET-MASTER-ADDR-BY-NAME", name)
	if err != nil {
		return w, err
	}
	w.Primary = topology.ParsePrimaryAddress(primary)
	peers, err := s.Do(ctx, address, "SENTINELS", name)
	w.peers = topology.ParsePeers(peers)
	return w, err
}

// UnknownName turns the error reply to a name that a sentinel does not watch into a Problem of the
// spec.
func (Set) UnknownName(err error, name string) error {
	if !redis.IsReply(err) || !strings.Contains(err.Error(), "with that name") {
		return err
	}
	return problem.Invalid(
		"spec.target.sentinel.masterName: the sentinels watch nothing named %q (%v)", name, err)
}

// WatchedName is the name of the target's primary: the given one, or the only one that the
// sentinels watch.
func (s Set) WatchedName(ctx context.Context) (string, error) {
	if s.MasterName != "" {
		return s.MasterName, nil
	}
	var failure error
	for _, address := range s.Addresses {
		reply, err := s.Do(ctx, address, "MASTERS")
		if err != nil {
			failure = err
			continue
		}
		names := topology.ParseWatchedNames(reply)
		if len(names) != 1 {
			return "", problem.Invalid(
				"spec.target.sentinel.masterName: the sentinel at %s watches %d primaries (%s): name one",
				address, len(names), strings.Join(names, ", "))
		}
		return names[0], nil
	}
	return "", s.given(failure)
}

// given turns the error of addresses that are no pods into a Problem of the spec.
func (s Set) given(err error) error {
	return confine.NamedBy(err, "spec.target.sentinel", "a sentinel")
}

// Do sends a SENTINEL command to one of them.
func (s Set) Do(ctx context.Context, address string, words ...any) (any, error) {
	return s.Servers.Do(ctx, address, s.Login, append([]any{"SENTINEL"}, words...)...)
}

// PortsIn are the ports at which a sentinel of the pod may listen: a Service may have another than
// its pods.
func (s Set) PortsIn(pod *corev1.Pod) []string {
	ports := []string{DefaultPort}
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

// IDAt is the ID of the sentinel at an address.
func (s Set) IDAt(ctx context.Context, address string) (string, error) {
	reply, err := s.Do(ctx, address, "MYID")
	id, _ := reply.(string)
	return id, err
}

// ListensAt reports whether a sentinel listens at an address. A server that refuses the user has
// the command.
func (s Set) ListensAt(ctx context.Context, address string) bool {
	_, err := s.Servers.Do(ctx, address, s.Login, "SENTINEL", "MYID")
	return err == nil || redis.IsReply(err) &&
		slices.ContainsFunc([]string{"NOPERM", "NOAUTH", "WRONGPASS"}, func(refusal string) bool {
			return strings.Contains(err.Error(), refusal)
		})
}

// Majority is the address that more than half of all known sentinels give, and the votes for
// people; "" where there is none.
func (w Watchers) Majority() (string, string) {
	votes := map[string]int{}
	for _, a := range w.Answered {
		votes[cmp.Or(a.Primary, "none")]++
	}
	var said []string
	for _, address := range slices.Sorted(maps.Keys(votes)) {
		if 2*votes[address] > w.All && address != "none" {
			return address, fmt.Sprintf("%d of %d sentinels name %s (config epoch %d)", votes[address],
				w.All, address, w.Epoch())
		}
		said = append(said, fmt.Sprintf("%d name %s", votes[address], address))
	}
	return "", fmt.Sprintf("no majority of the %d sentinels: %s", w.All, strings.Join(said, ", "))
}

// Naming says which of them name which server as the primary.
func (w Watchers) Naming() string {
	named := map[string][]string{}
	for _, a := range w.Answered {
		named[cmp.Or(a.Primary, "none")] = append(named[cmp.Or(a.Primary, "none")], a.Address)
	}
	return topology.Naming(named)
}

// Epoch is the latest config epoch of all sentinels.
func (w Watchers) Epoch() int64 {
	var latest int64
	for _, a := range w.Answered {
		latest = max(latest, a.ConfigEpoch)
	}
	return latest
}

// HaveEpochAfter reports whether more than half of all sentinels have a later config epoch.
func (w Watchers) HaveEpochAfter(since int64) bool {
	later := 0
	for _, a := range w.Answered {
		if a.ConfigEpoch > since {
			later++
		}
	}
	return 2*later > w.All
}

// FailingOver is the address of a sentinel that is failing the primary over; "" = none is.
func (w Watchers) FailingOver() string {
	for _, a := range w.Answered {
		if a.FailingOver {
			return a.Address
		}
	}
	return ""
}

// Switched is when the first sentinel switched to an address as the primary; zero while none has.
// The one that leads a failover gives the promoted address to clients before it switches, and until
// then counts from when it took the old one.
func (w Watchers) Switched(primary string) time.Time {
	var first time.Time
	for _, a := range w.Answered {
		at := w.At.Add(-a.RoleFor)
		if a.Watched.Address == primary && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// DownAfter is the shortest time after which a sentinel considers the primary down.
func (w Watchers) DownAfter() time.Duration {
	shortest := w.Answered[0].DownAfter
	for _, a := range w.Answered {
		shortest = min(shortest, a.DownAfter)
	}
	return shortest
}

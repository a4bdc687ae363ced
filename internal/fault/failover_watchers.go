package fault

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/redis"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis/topology"
)

// watcher is what one sentinel says of the primary that it watches.
type watcher struct {
	topology.Watched
	address string // where it was asked
	id      string
	primary string            // host:port that it gives to clients
	peers   map[string]string // host:port of the other sentinels by ID, those that are down included
}

// watchers are all sentinels that answered. Those that did not still count: a majority is one of all.
type watchers struct {
	name     string
	answered []watcher
	all      int // known, by themselves or by others
	at       time.Time
}

// askAll asks the given sentinels, and then those that they know, what they say of a primary. It is an error that none watches it.
func (f failover) askAll(ctx context.Context, name string) (watchers, error) {
	w := watchers{name: name}
	byID, asked := map[string]watcher{}, map[string]bool{}
	known := map[string]bool{}
	var failure error
	for next := f.Sentinels; len(next) > 0; {
		answers, err := f.askSome(ctx, next, name)
		failure = cmp.Or(failure, err)
		for _, address := range next {
			asked[address] = true
		}
		next = nil
		for _, a := range answers {
			byID[a.id], asked[a.address], known[a.id] = a, true, true
			for id, address := range a.peers {
				known[id] = true
				if _, there := byID[id]; !there && address != "" && !asked[address] && !slices.Contains(next, address) {
					next = append(next, address)
				}
			}
		}
	}
	if len(byID) == 0 {
		return w, failure
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		w.answered = append(w.answered, byID[id])
	}
	w.all, w.at = len(known), f.now()
	return w, nil
}

// askSome asks sentinels all at once. Its error is one of those that came.
func (f failover) askSome(ctx context.Context, addresses []string, name string) ([]watcher, error) {
	ctx, cancel := context.WithTimeout(ctx, lookFor)
	defer cancel()
	var mu sync.Mutex
	var asking sync.WaitGroup
	var answers []watcher
	var failure error
	for _, address := range addresses {
		asking.Go(func() {
			a, err := f.askOne(ctx, address, name)
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

func (f failover) askOne(ctx context.Context, address, name string) (watcher, error) {
	w := watcher{address: address}
	id, err := f.sentinel(ctx, address, "MYID")
	if err != nil {
		return w, err
	}
	w.id, _ = id.(string)
	said, err := f.sentinel(ctx, address, "MASTER", name)
	if err != nil {
		return w, unknownName(err, name)
	}
	if w.Watched, err = topology.ParseWatched(said); err != nil {
		return w, err
	}
	primary, err := f.sentinel(ctx, address, "GET-MASTER-ADDR-BY-NAME", name)
	if err != nil {
		return w, err
	}
	w.primary = topology.ParsePrimaryAddress(primary)
	peers, err := f.sentinel(ctx, address, "SENTINELS", name)
	w.peers = topology.ParsePeers(peers)
	return w, err
}

func (f failover) sentinel(ctx context.Context, address string, words ...any) (any, error) {
	return f.Servers.Do(ctx, address, f.SentinelLogin, append([]any{"SENTINEL"}, words...)...)
}

// unknownName turns the refusal of a name that a sentinel does not watch into the problem of the spec.
func unknownName(err error, name string) error {
	if !redis.IsReply(err) || !strings.Contains(err.Error(), "with that name") {
		return err
	}
	return problem.Invalid("spec.target.sentinel.masterName: the sentinels watch nothing named %q (%v)", name, err)
}

// watchedName is the name of the target's primary: the given one, or the only one that the sentinels watch.
func (f failover) watchedName(ctx context.Context) (string, error) {
	if f.MasterName != "" {
		return f.MasterName, nil
	}
	var failure error
	for _, address := range f.Sentinels {
		reply, err := f.sentinel(ctx, address, "MASTERS")
		if err != nil {
			failure = err
			continue
		}
		names := topology.ParseWatchedNames(reply)
		if len(names) != 1 {
			return "", problem.Invalid("spec.target.sentinel.masterName: the sentinel at %s watches %d primaries (%s): name one", address, len(names), strings.Join(names, ", "))
		}
		return names[0], nil
	}
	return "", failure
}

// majority is the address that more than half of all known sentinels give, and the votes for people; "" where there is none.
func (w watchers) majority() (string, string) {
	votes := map[string]int{}
	for _, a := range w.answered {
		votes[cmp.Or(a.primary, "none")]++
	}
	var said []string
	for _, address := range slices.Sorted(maps.Keys(votes)) {
		if 2*votes[address] > w.all && address != "none" {
			return address, fmt.Sprintf("%d of %d sentinels name %s (config epoch %d)", votes[address], w.all, address, w.epoch())
		}
		said = append(said, fmt.Sprintf("%d name %s", votes[address], address))
	}
	return "", fmt.Sprintf("no majority of the %d sentinels: %s", w.all, strings.Join(said, ", "))
}

// epoch is the latest config epoch that a sentinel knows of.
func (w watchers) epoch() int64 {
	var latest int64
	for _, a := range w.answered {
		latest = max(latest, a.ConfigEpoch)
	}
	return latest
}

// knowOf says whether more than half of all sentinels know of a failover since a config epoch.
func (w watchers) knowOf(since int64) bool {
	later := 0
	for _, a := range w.answered {
		if a.ConfigEpoch > since {
			later++
		}
	}
	return 2*later > w.all
}

// failingOver is where a sentinel is that fails the primary over now; "" = none does.
func (w watchers) failingOver() string {
	for _, a := range w.answered {
		if a.FailingOver {
			return a.address
		}
	}
	return ""
}

// switched is when the first sentinel took an address for the primary; zero while none has. The one that leads a failover gives the promoted
// address to clients before it switches, and until then counts from when it took the old one.
func (w watchers) switched(primary string) time.Time {
	var first time.Time
	for _, a := range w.answered {
		if at := w.at.Add(-a.RoleFor); a.Address == primary && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// downAfter is the shortest time after which a sentinel calls the primary down.
func (w watchers) downAfter() time.Duration {
	shortest := w.answered[0].DownAfter
	for _, a := range w.answered {
		shortest = min(shortest, a.DownAfter)
	}
	return shortest
}

// names says whether an address that the sentinels gave is the target's: they may know it by another name, but not by another run_id.
func (f failover) names(ctx context.Context, address string, target *v1alpha1.FaultTarget) (bool, error) {
	if address == target.Address {
		return true, nil
	}
	server, err := f.Servers.Ask(ctx, address, f.Login)
	return err == nil && server.RunID == target.RunID, err
}

package topology

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/redis"
)

// Start queries the deployment until its primaries are known or ctx ends, and then tracks it until Close; ctx has no effect
// afterwards. The error contains the answer of each address. Wrong credentials end the wait early. A standalone server at one address is not
// queried, as it has no topology to track.
func Start(ctx context.Context, target Target, kind Kind) (Tracker, error) {
	if target.After == nil {
		return nil, errors.New("target.After is not set: pass time.After")
	}
	const unlimited = 1 << 20
	switch kind {
	case KindStandalone:
		if len(target.Addresses) == 1 {
			return Fixed(NewMap(KindStandalone, 1, []Shard{{Primary: target.Addresses[0]}})), nil
		}
		return begin(ctx, newFollower(target, choice{target.Addresses}, target.Login, target.Addresses, unlimited))
	case KindReplication:
		return begin(ctx, newFollower(target, replication{target.Addresses}, target.Login, target.Addresses, unlimited))
	case KindSentinel:
		seeds, login := target.Sentinels, target.SentinelLogin
		if len(seeds) == 0 { // the addresses may be the sentinels', as Detect finds
			seeds, login = target.Addresses, target.Login
		}
		p := sentinels{seeds: seeds, name: target.MasterName, heard: map[string]string{}}
		return begin(ctx, newFollower(target, p, login, seeds, unlimited))
	case KindCluster:
		p := cluster{seeds: target.Addresses}
		return begin(ctx, newFollower(target, p, target.Login, target.Addresses, max(mostNodes, len(target.Addresses))))
	}
	return nil, fmt.Errorf("topology %q is none of %s, %s, %s, %s", kind, KindStandalone, KindReplication, KindSentinel, KindCluster)
}

func begin(ctx context.Context, f *follower) (Tracker, error) {
	if len(f.seeds) == 0 {
		return nil, errors.New("there is no address to query")
	}
	return f.start(ctx)
}

// Detect queries every address for the kind of its deployment until the answers show it or ctx ends. Nodes of a cluster and sentinels report it, the
// latter also if Target.Addresses contains them; several addresses with a replica among them are a plain replication; everything else is standalone,
// including the primary of a replication behind one address. As a replica may answer late, that is only said once every address has answered, or two
// timeouts after the first. It needs no permission beyond the login. The error contains the answer of each address; see RejectsLogin.
func Detect(ctx context.Context, target Target) (Kind, error) {
	if len(target.Sentinels) > 0 {
		return KindSentinel, nil
	}
	if len(target.Addresses) == 0 {
		return "", errors.New("detect the topology: there is no address to query")
	}
	known := map[string]hello{} // by address
	var late <-chan time.Time
	for {
		hellos, errs := greet(ctx, target)
		maps.Copy(known, hellos)
		if len(known) > 0 && late == nil {
			late = target.After(2 * target.timeout())
		}
		pending := slices.ContainsFunc(errs, func(err error) bool { return !isLogin(err) })
		kind, over := kindOf(slices.Collect(maps.Values(known))), ctx.Err() != nil || !pending
		switch {
		case len(known) > 0 && (over || kind != KindStandalone):
			return kind, nil
		case over && pending:
			return "", fmt.Errorf("detect the topology: %w", errors.Join(errs...))
		case over:
			return "", rejected{fmt.Errorf("detect the topology: %w", errors.Join(errs...))}
		}
		select {
		case <-ctx.Done():
		case <-late:
			return kind, nil
		case <-target.After(2 * restBetween):
		}
	}
}

// hello is the reply of HELLO.
type hello struct {
	mode string // standalone | sentinel | cluster
	role Role
}

func kindOf(hellos []hello) Kind {
	has := func(f func(hello) bool) bool { return slices.ContainsFunc(hellos, f) }
	switch {
	case has(func(h hello) bool { return h.mode == "cluster" }):
		return KindCluster
	case has(func(h hello) bool { return h.mode == "sentinel" }):
		return KindSentinel
	case len(hellos) > 1 && has(func(h hello) bool { return h.role == Replica }):
		return KindReplication
	}
	return KindStandalone
}

// greet sends HELLO to all addresses concurrently.
func greet(ctx context.Context, target Target) (hellos map[string]hello, errs []error) {
	hellos = map[string]hello{}
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, address := range target.Addresses {
		all.Go(func() {
			c := target.conn(address, target.Login)
			defer c.Close()
			h, err := sayHello(ctx, c)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", address, err))
				return
			}
			hellos[address] = h
		})
	}
	all.Wait()
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return hellos, errs
}

func sayHello(ctx context.Context, c *redis.Conn) (hello, error) {
	reply, err := question(ctx, c, "HELLO", "2")
	if redis.IsReply(err) && !isLogin(err) { // before Redis 6.0, or a proxy
		info, err := c.Info(ctx)
		if redis.IsReply(err) {
			return hello{mode: "standalone"}, nil // the server does not identify itself: treat it as one server
		}
		s := ServerOf("", info)
		return hello{mode: s.Mode, role: s.Role}, err
	}
	if err != nil {
		return hello{}, err
	}
	f := fieldsOf(reply)
	return hello{mode: textOf(f["mode"]), role: parseRole(textOf(f["role"]))}, err
}

// Fixed is a Tracker whose map never changes.
func Fixed(m *Map) Tracker { return fixed{m} }

type fixed struct{ m *Map }

func (f fixed) Map() *Map          { return f.m }
func (fixed) Refresh(string)       {}
func (fixed) Moved(uint16, string) {}
func (fixed) OnChange(func(*Map))  {}
func (fixed) Close()               {}

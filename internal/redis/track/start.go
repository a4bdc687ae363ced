// Package track finds the topology of a deployment, and follows it: it asks the servers and
// sentinels, and makes maps of their answers.
package track

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
)

// Start queries the deployment until its primaries are known, and one that sentinels name is no
// replica, or ctx ends, and then tracks it until Close; ctx has no effect afterwards. The error
// contains the answer of each address. What does not pass, at every address, ends the wait early,
// see IsLasting. A standalone server at one address is not queried, as it has no topology to track.
func Start(ctx context.Context, target Target, kind topology.Kind) (Tracker, error) {
	if target.After == nil {
		return nil, errors.New("target.After is not set: pass time.After")
	}
	const unlimited = 1 << 20
	//exhaustive:enforce
	switch kind {
	case topology.KindStandalone:
		if len(target.Addresses) == 1 {
			return Fixed(topology.NewMap(topology.KindStandalone, 1, []topology.Shard{
				{Primary: target.Addresses[0]},
			})), nil
		}
		return begin(ctx, newFollower(target, choice{target.Addresses}, target.Login, target.Addresses,
			unlimited))
	case topology.KindReplication:
		return begin(ctx, newFollower(target, replication{target.Addresses}, target.Login,
			target.Addresses, unlimited))
	case topology.KindSentinel:
		seeds, login := target.Sentinels, target.SentinelLogin
		if len(seeds) == 0 { // the addresses may be the sentinels', as Detect finds
			seeds, login = target.Addresses, target.Login
		}
		p := sentinels{
			seeds: seeds,
			name:  target.MasterName,
			heard: map[string]string{},
		}
		if len(seeds) == 0 {
			return nil, errNoAddress
		}
		return newFollower(target, p, login, seeds, unlimited).startConfirmed(ctx)
	case topology.KindCluster:
		p := cluster{seeds: target.Addresses}
		return begin(ctx, newFollower(target, p, target.Login, target.Addresses,
			max(mostNodes, len(target.Addresses))))
	}
	return nil, fmt.Errorf("topology %q is none of %s, %s, %s, %s", kind, topology.KindStandalone,
		topology.KindReplication, topology.KindSentinel, topology.KindCluster)
}

func begin(ctx context.Context, f *follower) (Tracker, error) {
	if len(f.seeds) == 0 {
		return nil, errNoAddress
	}
	return f.start(ctx)
}

var errNoAddress = errors.New("there is no address to query")

// Detect queries every address for the kind of its deployment until the answers show it or ctx
// ends. Nodes of a cluster and sentinels report it, the latter also if Target.Addresses contains
// them; several addresses with a replica among them are a plain replication; everything else is
// standalone, including the primary of a replication behind one address. That is said of several
// addresses only once all have answered, and unless they are several primaries, as the servers of a
// replication are until it is set up. It needs no permission beyond the login. The error contains
// the answer of each address; see IsLasting.
func Detect(ctx context.Context, target Target) (topology.Kind, error) {
	if len(target.Sentinels) > 0 {
		return topology.KindSentinel, nil
	}
	if len(target.Addresses) == 0 {
		return "", errors.New("detect the topology: there is no address to query")
	}
	addresses := slices.Compact(slices.Sorted(slices.Values(target.Addresses)))
	known := map[string]hello{} // by address
	var last []error
	asked := false
	tell := target.teller()
	for {
		hellos, errs := greet(ctx, target, addresses)
		maps.Copy(known, hellos)
		if kind := kindOf(known, len(addresses)); kind != "" {
			return kind, nil
		}
		if ctx.Err() == nil || !asked { // not those of an attempt that was cut off
			last, asked = errs, true
		}
		failed := fmt.Errorf("detect the topology: %w",
			troubles(append(slices.Clone(last), unsettled(known)...)))
		if len(last) > 0 && !slices.ContainsFunc(last, target.passes) {
			return "", lasting{failed}
		}
		tell(failed)
		select {
		case <-ctx.Done():
			return "", failed
		case <-target.After(2 * restBetween):
		}
	}
}

// hello is the reply of HELLO.
type hello struct {
	mode  string // standalone | sentinel | cluster
	role  topology.Role
	runID string // of a primary, if it is permitted to read it
}

// kindOf is the kind that the answers show; "" = none yet.
func kindOf(known map[string]hello, addresses int) topology.Kind {
	has := func(f func(hello) bool) bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(known)), f)
	}
	switch {
	case has(func(h hello) bool { return h.mode == "cluster" }):
		return topology.KindCluster
	case has(func(h hello) bool { return h.mode == "sentinel" }):
		return topology.KindSentinel
	case len(known) > 1 && has(func(h hello) bool { return h.role == topology.Replica }):
		return topology.KindReplication
	case len(known) < addresses || len(primaries(known)) > 1:
		return ""
	}
	return topology.KindStandalone
}

// primaries are the addresses of different primaries, sorted.
func primaries(known map[string]hello) []string {
	var all []string
	seen := map[string]bool{}
	for _, address := range slices.Sorted(maps.Keys(known)) {
		h := known[address]
		if h.role == topology.Primary && h.runID != "" && !seen[h.runID] {
			seen[h.runID] = true
			all = append(all, address)
		}
	}
	return all
}

// unsettled says what keeps the answers from showing a kind.
func unsettled(known map[string]hello) []error {
	if all := primaries(known); len(all) > 1 {
		return []error{
			fmt.Errorf(
				"%s are primaries without a replica among the addresses: set the topology, %s to use one of "+
					"them", strings.Join(all, ", "), topology.KindStandalone),
		}
	}
	if len(known) > 0 {
		return []error{errors.New("the topology shows once every address answers, unless it is set")}
	}
	return nil
}

// greet sends HELLO to all addresses concurrently.
func greet(
	ctx context.Context, target Target, addresses []string,
) (hellos map[string]hello, errs []error) {
	hellos = map[string]hello{}
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, address := range addresses {
		all.Go(func() {
			c := target.conn(address, target.Login)
			defer c.Close()
			h, err := sayHello(ctx, c)
			if err == nil && h.role == topology.Primary && len(addresses) > 1 {
				h.runID, err = runID(ctx, c)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", address, steady{err}))
				return
			}
			hellos[address] = h
		})
	}
	all.Wait()
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return hellos, errs
}

// runID is the identity of a server; "" if it does not tell it to this user.
func runID(ctx context.Context, c *redis.Conn) (string, error) {
	info, err := c.Info(ctx, "server")
	if redis.IsReply(err) {
		err = nil
	}
	return info["run_id"], err
}

func sayHello(ctx context.Context, c *redis.Conn) (hello, error) {
	reply, err := question(ctx, c, "HELLO", "2")
	if lacks(ctx, c, err, "HELLO", "2") { // before Redis 6.0, or a proxy
		info, err := c.Info(ctx)
		if lacks(ctx, c, err, "INFO") {
			// the server does not identify itself: treat it as one server
			return hello{mode: "standalone"}, nil
		}
		s := topology.ServerOf("", info)
		return hello{mode: s.Mode, role: s.Role}, err
	}
	if err != nil {
		return hello{}, err
	}
	f := topology.FieldsOf(reply)
	return hello{
		mode: topology.TextOf(f["mode"]),
		role: topology.RoleOf(topology.TextOf(f["role"])),
	}, err
}

// lacks reports whether err, the outcome of a command, shows that there is no such command: it is
// said so, or it is a proxy that closes the connection, or never answers, twice over, while it
// answers PING each time.
func lacks(ctx context.Context, c *redis.Conn, err error, words ...string) bool {
	_, atDial := errors.AsType[*redis.DialError](err)
	for range 2 {
		if atDial || !redis.IsBroken(err) && !redis.IsTimeout(err) {
			return isUnsupported(err)
		}
		if _, pinged := c.Do(ctx, "PING"); pinged != nil && (!redis.IsReply(pinged) || isLogin(pinged)) {
			return false
		}
		_, err = c.Do(ctx, words...)
		_, atDial = errors.AsType[*redis.DialError](err)
	}
	return !atDial && (redis.IsBroken(err) || redis.IsTimeout(err)) && ctx.Err() == nil
}

// Fixed is a Tracker whose map never changes.
func Fixed(m *topology.Map) Tracker {
	return fixed{m}
}

type fixed struct{ m *topology.Map }

func (f fixed) Map() *topology.Map {
	return f.m
}
func (fixed) Refresh(string) {}
func (fixed) Moved(uint16, string) bool {
	return false
}
func (fixed) OnChange(func(*topology.Map)) {}
func (fixed) Close()                       {}

// Tracker tracks the topology of a deployment. It is safe for concurrent use.
type Tracker interface {
	// Map returns the latest map, never nil. It is one atomic load.
	Map() *topology.Map
	// Refresh requests a round of queries, for instance after READONLY or a failed dial; the reason is
	// logged. It never blocks.
	// Requested rounds start immediately, at most every 50 ms; without a request there is one every
	// second.
	Refresh(reason string)
	// Moved reports a reply "MOVED slot address"; "" is an address that could not be read. A round of
	// queries follows. The map contains the move when Moved returns true; false = no server has told
	// of that address yet, so that the map has nowhere to send requests for it.
	Moved(slot uint16, address string) bool
	// OnChange calls f with every new map from now on, sequentially, in a goroutine of the tracker; f
	// must not block.
	OnChange(f func(*topology.Map))
	// Close ends the tracker's goroutines and connections, and waits for them.
	Close()
}

// Target is a deployment as a client reaches it.
type Target struct {
	Addresses     []string  // host:port of servers; may be empty if there are sentinels
	Login         LoginFunc // to servers
	Sentinels     []string  // host:port of sentinels; none = no Sentinel
	MasterName    string    // the name that the sentinels monitor; "" = the only one
	SentinelLogin LoginFunc // to sentinels

	Timeout time.Duration                        // of one dial, and of one reply; 0 = 1 s
	After   func(time.Duration) <-chan time.Time // time.After, or the clock of a test
	Log     *slog.Logger                         // for changes and errors; nil = no log
	// told why Start or Detect has not succeeded yet, once a second at most; nil = nobody
	Trouble func(error)
	// reports whether the failure of an address cannot pass by waiting; nil = only a rejected login
	// cannot
	Lasting func(error) bool

	tcp redis.DialFunc // nil = a net.Dialer
}

// LoginFunc is called for every dial, so that rotated secrets are picked up; nil = no login.
type LoginFunc func() (redis.Login, error)

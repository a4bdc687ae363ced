package topology

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/redis"
)

// Watched is a monitored primary from the perspective of a sentinel.
type Watched struct {
	Name string
	// host:port of the server that this sentinel monitors as the primary; while FailingOver,
	// GET-MASTER-ADDR-BY-NAME already returns the promoted one
	Address     string
	ConfigEpoch int64         // increases with every successful failover
	FailingOver bool          // this sentinel is failing it over
	DownAfter   time.Duration // time without a reply after which the sentinel considers it down
	// time since the sentinel considers this server the primary; reset by every switch
	RoleFor time.Duration
}

// ParseWatched reads the reply of SENTINEL MASTER.
func ParseWatched(reply any) (Watched, error) {
	f := FieldsOf(reply)
	w := Watched{Name: TextOf(f["name"])}
	if w.Name == "" {
		return w, Unexpected("SENTINEL MASTER", reply)
	}
	if f["ip"] != nil && f["port"] != nil {
		w.Address = joinAddress(f["ip"], f["port"])
	}
	w.ConfigEpoch, _ = numberOf(f["config-epoch"])
	w.FailingOver = slices.Contains(strings.Split(TextOf(f["flags"]), ","), "failover_in_progress")
	w.DownAfter = milliseconds(f["down-after-milliseconds"])
	w.RoleFor = milliseconds(f["role-reported-time"])
	return w, nil
}

func milliseconds(reply any) time.Duration {
	n, _ := numberOf(reply)
	return time.Duration(n) * time.Millisecond
}

// ParseWatchedNames reads the reply of SENTINEL MASTERS: the names of the primaries that a sentinel
// monitors, sorted.
func ParseWatchedNames(reply any) []string {
	var names []string
	for _, entry := range listOf(reply) {
		names = append(names, TextOf(FieldsOf(entry)["name"]))
	}
	slices.Sort(names)
	return names
}

// ParsePeers reads the reply of SENTINEL SENTINELS: the host:port of the other sentinels by ID,
// including those that are down.
func ParsePeers(reply any) map[string]string {
	peers := map[string]string{}
	for _, entry := range listOf(reply) {
		f := FieldsOf(entry)
		if id := TextOf(f["runid"]); id != "" {
			peers[id] = joinAddress(f["ip"], f["port"])
		}
	}
	return peers
}

// ParsePrimaryAddress reads the reply of SENTINEL GET-MASTER-ADDR-BY-NAME: host:port; "" if the
// sentinel monitors no primary of that name.
func ParsePrimaryAddress(reply any) string {
	l := listOf(reply)
	if len(l) != 2 {
		return ""
	}
	return joinAddress(l[0], l[1])
}

// Servers queries servers and sends them commands; see the methods of redis.Client. Real uses
// Redis; tests may use an implementation that fails on demand.
type Servers interface {
	Do(ctx context.Context, address string, login redis.Login, command ...any) (any, error)
	// Ask reads INFO. An error means that no valid reply was received within the login's timeout.
	Ask(ctx context.Context, address string, login redis.Login) (Server, error)
	Shutdown(ctx context.Context, address string, login redis.Login) error
	Segfault(ctx context.Context, address string, login redis.Login) error
	Queue(ctx context.Context, key, address string, login redis.Login, commands [][]string) error
	Queued(key string) bool
	Flood(ctx context.Context, key, address string, login redis.Login, argument, most int64) (
		sent int64, err error)
	HangUp(key string)
}

// Listener subscribes to channels of servers and sentinels, as redis.Client does.
type Listener interface {
	Listen(ctx context.Context, address string, login redis.Login, pattern string, heard func(
		at time.Time, channel, payload string,
	))
}

// Real queries real servers. It is created by NewReal and ended by Close.
type Real struct{ *redis.Client }

var (
	_ Servers  = Real{}
	_ Listener = Real{}
)

// NewReal returns a Real without connections.
func NewReal() *Real {
	return &Real{redis.NewClient(nil)}
}

// Ask implements Servers.
func (r Real) Ask(ctx context.Context, address string, login redis.Login) (Server, error) {
	reply, err := r.Do(ctx, address, login, "INFO")
	if err != nil {
		return Server{}, err
	}
	text, _ := reply.(string)
	return ServerOf(address, redis.ParseInfo(text)), nil
}

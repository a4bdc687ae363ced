package track

import (
	"log/slog"
	"time"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
)

// Tracker tracks the topology of a deployment. It is safe for concurrent use.
type Tracker interface {
	// Map returns the latest map, never nil. It is one atomic load.
	Map() *topology.Map
	// Refresh requests a round of queries, for instance after READONLY or a failed dial; the reason is
	// logged. It never blocks.
	// Requested rounds start immediately, at most every 50 ms; without a request there is one every
	// second.
	Refresh(reason string)
	// Moved reports a reply "MOVED slot address". The map contains it when Moved returns; a round of
	// queries follows. If the host of the address is empty, the caller must insert that of the server
	// that sent the reply.
	Moved(slot uint16, address string)
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

package topology

import (
	"log/slog"
	"time"

	"github.com/redquake/redquake/internal/redis"
)

// Tracker knows how a deployment looks now and follows its changes. All methods may be called at any time from any goroutine.
type Tracker interface {
	// Map is the newest map, never nil. It is one atomic load.
	Map() *Map
	// Refresh asks for a new look soon, for instance after READONLY or a dial that failed; the reason goes to the log. It never blocks.
	// The first look comes at once and further ones at most every 50 ms while asked for; unasked there is one every second.
	Refresh(reason string)
	// Moved tells of a reply "MOVED slot address". The map has it when Moved returns; a look follows. The address is the one of the reply:
	// where its host is empty, that of the server that sent it must be put in.
	Moved(slot uint16, address string)
	// OnChange calls f with every new map from now on, one after the other, from a goroutine of the tracker; f must not block.
	OnChange(f func(*Map))
	// Close ends the tracker's goroutines and connections and waits for them.
	Close()
}

// Target is a deployment as a client reaches it.
type Target struct {
	Addresses     []string  // host:port of servers; may be empty where there are sentinels
	Login         LoginFunc // to servers
	Sentinels     []string  // host:port of sentinels; none = no Sentinel
	MasterName    string    // the name that the sentinels watch; "" = the only one they watch
	SentinelLogin LoginFunc // to sentinels

	Timeout time.Duration                        // of one dial, and of one answer; 0 = 1 s
	After   func(time.Duration) <-chan time.Time // time.After; tests may set the time
	Log     *slog.Logger                         // changes and troubles; nil = nowhere

	tcp redis.DialFunc // nil = a net.Dialer
}

// LoginFunc is called at every dial, so that rotated secrets are picked up; nil = no login.
type LoginFunc func() (redis.Login, error)

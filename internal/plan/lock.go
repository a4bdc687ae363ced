package plan

import (
	"fmt"
	"time"
)

// Lock is users that compete for locks, as applications build them on one Redis: SET NX PX with a
// token of the holder's own; a script that extends the TTL if the token is still there; a script
// that deletes it if it is. A user holds a lock for a time, gives it up, and tries again.
//
// The locks of a load pod are its own, so that the instants of all its users can be compared.
type Lock struct {
	Pods  int           `json:"pods"`  // load pods, at least 1
	Locks int           `json:"locks"` // of each load pod, at least 1
	TTL   time.Duration `json:"ttl"`   // at least 10ms
	Hold  time.Duration `json:"hold"`  // how long a user holds a lock
	Renew time.Duration `json:"renew"` // how often the holder extends the TTL; below TTL
	Retry time.Duration `json:"retry"` // until the next try, of a user that has no lock
	// how many replicas must have a lock before its holder counts on it: WAIT; 0 = none
	WaitReplicas int           `json:"waitReplicas,omitempty"`
	Wait         time.Duration `json:"wait,omitempty"`    // how long WAIT takes at most
	Fencing      bool          `json:"fencing,omitempty"` // each holder gets a token that grows
}

// The operations of a lock, in the order of every record.
const (
	LockTake = iota
	LockRenew
	LockRelease
)

func (l *Lock) check(*Keyspace) string {
	switch {
	case l.Pods < 1:
		return "pods: must be at least 1"
	case l.Locks < 1:
		return "locks: must be at least 1"
	case l.TTL < 10*time.Millisecond:
		return "ttl: must be at least 10ms"
	case l.Hold < 0 || l.Retry <= 0:
		return "hold and retryEvery: must be above 0"
	case l.Renew <= 0 || l.Renew >= l.TTL:
		return fmt.Sprintf("renewEvery: must be above 0 and below ttl, %s", l.TTL)
	}
	return ""
}

func (l *Lock) operations() []Operation {
	return []Operation{{Name: "take", Weight: 1}, {Name: "renew", Weight: 1}, {Name: "release", Weight: 1}}
}

func (l *Lock) tallies() []string {
	return nil
}

// checkLock rejects loads in which locks cannot be competed for.
func (p *Plan) checkLock() string {
	l := p.Workload.Lock
	switch {
	case l == nil:
		return ""
	case p.Shape.OpenLoop() || len(p.Shape.Stages) > 0:
		return "workload.lock: as many users as load.users compete for locks: set neither rate nor stages"
	case p.Shape.ThinkTime > 0:
		return "load.thinkTime: users of workload.lock wait as its hold and retryEvery say"
	case p.Shape.Users < 2*l.Locks*l.Pods:
		return fmt.Sprintf("workload.lock.locks: %d locks of %d load pods need %d users: two or more compete for each",
			l.Locks, l.Pods, 2*l.Locks*l.Pods)
	case p.Client.Pipeline > 1:
		return "client.pipeline: a user of workload.lock has one request at a time: it must be 1"
	case l.WaitReplicas > 0 && p.Client.Mode == Multiplexed:
		return "workload.lock.waitReplicas: WAIT holds back all requests of its connection: set client.mode Dedicated"
	case l.WaitReplicas > 0 && p.Client.Driver.IsLibrary():
		return fmt.Sprintf("workload.lock.waitReplicas: driver %s may send WAIT over another connection: set Native",
			p.Client.Driver)
	}
	return ""
}

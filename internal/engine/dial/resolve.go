package dial

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis"
)

// Resolver shares DNS lookups among all dials of a run: while Redis is down, hundreds of dials per
// second resolve the same name, which in a Kubernetes cluster takes up to ten queries each and
// would overload the cluster's DNS. Only one lookup per name is in progress at a time, and its
// result is used for answerTTL, short enough to notice a changed address immediately.
type Resolver struct {
	// Lookup returns the addresses of a host, and Dial connects to one of them.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)

	mu      sync.Mutex
	answers map[string]*answer
}

// answerTTL is the maximum age of a result. If a lookup hangs, another one starts after HedgeAfter.
const answerTTL = 20 * time.Millisecond

// lookupTimeout bounds a lookup, independently of the dials that wait for it.
const lookupTimeout = 10 * time.Second

// answer is a lookup, in progress until done is closed.
type answer struct {
	began time.Time
	done  chan struct{}
	at    time.Time
	addrs []netip.Addr
	err   error
}

// NewResolver returns a resolver that asks the system's, and dials with the system's timeouts.
func NewResolver() *Resolver {
	return &Resolver{
		Lookup: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		},
		Dial:    new(net.Dialer).DialContext,
		answers: map[string]*answer{},
	}
}

// TCP connects to host:port, or to a unix socket. It tries the addresses of the host one after the
// other, each within its share of ctx's deadline.
func (r *Resolver) TCP(ctx context.Context, network, address string) (net.Conn, error) {
	if plan.IsSocket(address) {
		return redis.DialContext(ctx, network, address)
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &net.OpError{
			Op:  "dial",
			Net: network,
			Err: err,
		}
	}
	_, err = netip.ParseAddr(host)
	if err == nil || host == "" {
		return r.Dial(ctx, network, address)
	}
	addrs, err := r.resolve(ctx, host)
	if err != nil {
		return nil, &net.OpError{
			Op:  "dial",
			Net: network,
			Err: err,
		}
	}
	var first error
	for i, addr := range addrs {
		c, err := r.dialPart(ctx, len(addrs)-i, network, net.JoinHostPort(addr.Unmap().String(), port))
		if err == nil {
			return c, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// dialPart dials within 1/parts of the remaining time.
func (r *Resolver) dialPart(
	ctx context.Context, parts int, network, address string,
) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok && parts > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(parts))
		defer cancel()
	}
	return r.Dial(ctx, network, address)
}

// resolve returns the host's addresses, at least one.
func (r *Resolver) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	r.mu.Lock()
	a := r.answers[host]
	if a == nil || a.isStale(time.Now()) {
		a = &answer{began: time.Now(), done: make(chan struct{})}
		r.answers[host] = a
		//nolint:gosec,contextcheck // the answer is for others, too: whoever asked may give up
		go r.query(host, a)
	}
	r.mu.Unlock()
	select {
	case <-a.done:
		return a.addrs, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// isStale reports whether a new lookup is due: the result is too old, or so late that the query may
// be lost.
func (a *answer) isStale(now time.Time) bool {
	if a.at.IsZero() {
		return now.Sub(a.began) > HedgeAfter
	}
	return now.Sub(a.at) > answerTTL
}

func (r *Resolver) query(host string, a *answer) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	addrs, err := r.Lookup(ctx, host)
	if err == nil && len(addrs) == 0 {
		err = &net.DNSError{
			Err:        "no address",
			Name:       host,
			IsNotFound: true,
		}
	}
	r.mu.Lock()
	a.addrs, a.err, a.at = addrs, err, time.Now()
	r.mu.Unlock()
	close(a.done)
}

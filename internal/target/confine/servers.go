// Package confine sends commands to the pods of one namespace only: it knows which addresses are
// theirs, with few reads in a large namespace, and dials them by their IP.
package confine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
)

// AskTimeout limits every query to Redis that a fault depends on.
const AskTimeout = 2 * time.Second

// QueryTimeout limits a query to a server that may hang because of a fault: several are made within
// one AskTimeout.
const QueryTimeout = AskTimeout / 4

// Servers sends commands only to pods of one namespace. Addresses come from whoever controls a
// Redis: its lists of replicas, of nodes and of sentinels, and the spec. Without this, the operator
// would obey them against pods of others.
type Servers struct {
	servers topology.Servers
	Book    *Book
}

var (
	_ topology.Servers  = Servers{}
	_ topology.Listener = Servers{}
)

// To confines commands to the pods of a namespace.
func To(servers topology.Servers, book *Book) Servers {
	return Servers{servers, book}
}

// Foreign is why nothing was sent to an address: no pod of the namespace has it. It is a Problem,
// and redis.ErrNotSent.
type Foreign struct{ Address, Namespace string }

func (f *Foreign) Error() string {
	return fmt.Sprintf("%s is the address of no pod of namespace %s, and commands go only to those",
		redis.Printable(f.Address, 300), f.Namespace)
}

// Unwrap makes it a Problem: the pod may not have its address yet.
func (f *Foreign) Unwrap() []error {
	return []error{
		&problem.Problem{Reason: v1alpha1.ReasonForeignAddress, Message: f.Error()},
		redis.ErrNotSent,
	}
}

// Unlisted is why nothing was sent to an address of which it is not known yet whether a pod of the
// namespace has it. It is redis.ErrNotSent, and no timeout of a server.
type Unlisted struct {
	what, namespace string
	cause           error
}

func (u *Unlisted) Error() string {
	return fmt.Sprintf("the %s of namespace %s could not be listed %v", u.what, u.namespace, u.cause)
}

// Unwrap omits the cause: what the API server does says nothing of the server at the address.
func (u *Unlisted) Unwrap() error {
	return redis.ErrNotSent
}

// NamedBy adds to a Foreign error who named the address, and as what. Other errors are returned as
// they are.
func NamedBy(err error, who, as string) error {
	foreign, ok := errors.AsType[*Foreign](err)
	if !ok {
		return err
	}
	return &problem.Problem{Reason: v1alpha1.ReasonForeignAddress, Message: fmt.Sprintf(
		"%s names %s as %s, which is no pod of namespace %s: commands go only to pods of the namespace",
		who, redis.Printable(foreign.Address, 300), as, foreign.Namespace)}
}

// at calls send with the places at which an address is dialled, until something was sent.
func (c Servers) at(ctx context.Context, address string, send func(place string) error) error {
	places, err := c.Book.Resolve(ctx, address)
	if err != nil {
		return err
	}
	for i, place := range places {
		err = send(place)
		if err == nil || i == len(places)-1 || ctx.Err() != nil || !errors.Is(err, redis.ErrNotSent) {
			break
		}
	}
	return err
}

// Do implements topology.Servers.
func (c Servers) Do(
	ctx context.Context, address string, login redis.Login, command ...any,
) (reply any, err error) {
	err = c.at(ctx, address, func(place string) (err error) {
		reply, err = c.servers.Do(ctx, place, login, command...)
		return err
	})
	return reply, err
}

// Ask implements topology.Servers.
func (c Servers) Ask(
	ctx context.Context, address string, login redis.Login,
) (server topology.Server, err error) {
	err = c.at(ctx, address, func(place string) (err error) {
		server, err = c.servers.Ask(ctx, place, login)
		return err
	})
	if err == nil {
		server.Address = address
	}
	return server, err
}

// Shutdown implements topology.Servers.
func (c Servers) Shutdown(ctx context.Context, address string, login redis.Login) error {
	return c.at(ctx, address, func(place string) error {
		return c.servers.Shutdown(ctx, place,
			login)
	})
}

// Segfault implements topology.Servers.
func (c Servers) Segfault(ctx context.Context, address string, login redis.Login) error {
	return c.at(ctx, address, func(place string) error {
		return c.servers.Segfault(ctx, place,
			login)
	})
}

// Queue implements topology.Servers.
func (c Servers) Queue(
	ctx context.Context, key, address string, login redis.Login, commands [][]string,
) error {
	return c.at(ctx, address, func(place string) error {
		return c.servers.Queue(ctx, key, place, login,
			commands)
	})
}

// Flood implements topology.Servers.
func (c Servers) Flood(
	ctx context.Context, key, address string, login redis.Login, argument, most int64,
) (sent int64, err error) {
	err = c.at(ctx, address, func(place string) (err error) {
		sent, err = c.servers.Flood(ctx, key, place, login, argument, most)
		return err
	})
	return sent, err
}

// Queued implements topology.Servers.
func (c Servers) Queued(key string) bool {
	return c.servers.Queued(key)
}

// HangUp implements topology.Servers.
func (c Servers) HangUp(key string) {
	c.servers.HangUp(key)
}

// How often the pod of a subscription is read, as its IP may become another's, and how often one
// that has no pod is looked for.
const (
	relocate     = time.Second
	relocateMost = 10 * time.Second
)

// Listen implements topology.Listener, where the servers do.
func (c Servers) Listen(
	ctx context.Context, address string, login redis.Login, pattern string,
	heard func(at time.Time, channel, payload string),
) {
	listener, ok := c.servers.(topology.Listener)
	for wait := relocate; ok && ctx.Err() == nil; wait = min(2*wait, relocateMost) {
		if places, err := c.Book.Resolve(ctx, address); err == nil {
			within, cancel := context.WithCancel(ctx)
			pod, _ := c.Book.Occupant(ctx, places[0])
			go c.endWhenGone(within, cancel, places[0], pod)
			listener.Listen(within, places[0], login, pattern, heard)
			cancel()
			wait = relocate
		}
		sleep(ctx, wait)
	}
}

// endWhenGone cancels a subscription when its place is not that of its pod any more.
func (c Servers) endWhenGone(
	ctx context.Context, cancel context.CancelFunc, place string, pod types.UID,
) {
	for sleep(ctx, relocate) {
		now, _ := c.Book.Occupant(ctx, place)
		if pod == "" || now != pod {
			cancel()
		}
	}
}

// sleep reports whether the time has passed before ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

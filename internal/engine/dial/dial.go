// Package dial establishes connections that are ready for requests, again and again and past
// attempts that hang, and explains why one fails.
package dial

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/engine/socket"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis"
)

// Dialer establishes connections that are ready for requests.
type Dialer struct {
	Target   plan.Target
	Timeout  time.Duration // of one attempt: name, TCP, TLS and HELLO together, per address
	Protocol int           // 3 = by HELLO, if the servers know it
	Hello    *Hello        // what is known of that, shared by the dialers of a run; nil = nothing is kept
	Password *string       // overrides Target.PasswordFile
	TCP      redis.DialFunc
	// Addresses, if set, returns the addresses to try instead of Target.Addresses. It follows the
	// topology; an empty list is ErrNoServer.
	Addresses func() []string
	// OnFailure is called for every failed attempt; it may be nil.
	OnFailure func(err error)
	// Replica sends READONLY, so that a replica of a cluster serves reads.
	Replica bool
	Name    string        // names the destination in errors when no address is known
	Hedges  chan struct{} // tokens for additional concurrent attempts
}

// Line is a connection that is ready for requests, with the address that was dialled.
type Line struct {
	net.Conn
	Address string
}

// ErrNoServer is returned when no address of the destination is known.
var ErrNoServer = errors.New("no address of it is known")

// Dial tries the target's addresses in order, starting with number first, and returns the first
// connection that is established. greeting, unless nil, counts the dials whose TCP connection is
// established and whose server has not replied yet: another dial would only wait behind them.
func (d *Dialer) Dial(ctx context.Context, first int, greeting *atomic.Int64) (Line, error) {
	addresses := d.Target.Addresses
	if d.Addresses != nil {
		addresses = d.Addresses()
	}
	var failed error
	for i := range addresses {
		address := addresses[(first+i)%len(addresses)]
		c, err := d.dialAddress(ctx, address, greeting)
		if err == nil {
			return Line{c, address}, nil
		}
		if failed == nil {
			failed = err
		}
	}
	if failed == nil {
		failed = &redis.DialError{
			Stage:   redis.StageTCP,
			Address: d.Name,
			Err:     ErrNoServer,
		}
	}
	if d.OnFailure != nil && ctx.Err() == nil {
		d.OnFailure(failed)
	}
	return Line{}, failed
}

func (d *Dialer) dialAddress(
	ctx context.Context, address string, greeting *atomic.Int64,
) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	login, failed := d.login()
	if failed != nil {
		failed.Address = address
		return nil, failed
	}
	stands := false
	one := redis.Dialer{
		Login:  login,
		Setup:  d.setup(),
		Spares: d.withoutHello,
		TCP: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := d.TCP(ctx, network, address)
			if err != nil {
				return nil, err
			}
			if stands = greeting != nil; stands {
				greeting.Add(1)
			}
			return socket.Stamped(c), nil
		},
	}
	defer func() {
		if stands {
			greeting.Add(-1)
		}
	}()
	return one.Dial(ctx, address)
}

func (d *Dialer) login() (redis.Login, *redis.DialError) {
	return Login(d.Target.Username, d.Secret, d.Target.TLS)
}

// setup returns the commands to send after the login on a new connection.
func (d *Dialer) setup() [][]string {
	var commands [][]string
	if d.Speaks() == 3 {
		commands = append(commands, []string{"HELLO", "3"})
	}
	if d.Replica {
		commands = append(commands, []string{"READONLY"})
	}
	if d.Target.Database > 0 {
		commands = append(commands, []string{"SELECT", strconv.Itoa(d.Target.Database)})
	}
	return commands
}

// Secret returns the current password.
func (d *Dialer) Secret() (string, error) {
	if d.Password != nil {
		return *d.Password, nil
	}
	return ReadPassword(d.Target.PasswordFile)
}

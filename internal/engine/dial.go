package engine

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

// dialer establishes connections that are ready for requests.
type dialer struct {
	target   plan.Target
	timeout  time.Duration // of one attempt: name, TCP, TLS and HELLO together, per address
	protocol int
	password *string // overrides target.PasswordFile
	tcp      redis.DialFunc
	// addresses, if set, returns the addresses to try instead of target.Addresses. It follows the topology; an empty list is errNoServer.
	addresses func() []string
	// onFailure is called for every failed attempt; it may be nil.
	onFailure func(err error)
	// replica sends READONLY, so that a replica of a cluster serves reads.
	replica bool
	name    string        // names the destination in errors when no address is known
	hedges  chan struct{} // tokens for additional concurrent attempts
}

// line is a connection that is ready for requests, with the address that was dialled.
type line struct {
	net.Conn
	address string
}

// errNoServer is returned when no address of the destination is known.
var errNoServer = errors.New("no address of it is known")

// dial tries the target's addresses in order, starting with number first, and returns the first connection that is established.
// greeting, unless nil, counts the dials whose TCP connection is established and whose server has not replied yet: another dial would only wait
// behind them.
func (d *dialer) dial(ctx context.Context, first int, greeting *atomic.Int64) (line, error) {
	addresses := d.target.Addresses
	if d.addresses != nil {
		addresses = d.addresses()
	}
	var failed error
	for i := range addresses {
		address := addresses[(first+i)%len(addresses)]
		c, err := d.dialAddress(ctx, address, greeting)
		if err == nil {
			return line{c, address}, nil
		}
		if failed == nil {
			failed = err
		}
	}
	if failed == nil {
		failed = &redis.DialError{Stage: redis.StageTCP, Address: d.name, Err: errNoServer}
	}
	if d.onFailure != nil && ctx.Err() == nil {
		d.onFailure(failed)
	}
	return line{}, failed
}

func (d *dialer) dialAddress(ctx context.Context, address string, greeting *atomic.Int64) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	login, failed := d.login()
	if failed != nil {
		failed.Address = address
		return nil, failed
	}
	stands := false
	one := redis.Dialer{Login: login, Setup: d.setup(), TCP: func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := d.tcp(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if stands = greeting != nil; stands {
			greeting.Add(1)
		}
		return socket.Stamped(c), nil
	}}
	defer func() {
		if stands {
			greeting.Add(-1)
		}
	}()
	return one.Dial(ctx, address)
}

func (d *dialer) login() (redis.Login, *redis.DialError) {
	return login(d.target.Username, d.secret, d.target.TLS)
}

// setup returns the commands to send after the login on a new connection.
func (d *dialer) setup() [][]string {
	var commands [][]string
	if d.protocol == 3 {
		commands = append(commands, []string{"HELLO", "3"})
	}
	if d.replica {
		commands = append(commands, []string{"READONLY"})
	}
	if d.target.Database > 0 {
		commands = append(commands, []string{"SELECT", strconv.Itoa(d.target.Database)})
	}
	return commands
}

// secret returns the current password.
func (d *dialer) secret() (string, error) {
	if d.password != nil {
		return *d.password, nil
	}
	return readPassword(d.target.PasswordFile)
}

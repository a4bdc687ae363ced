package engine

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/redis"
)

// dialer makes connections that are ready for requests.
type dialer struct {
	target   plan.Target
	timeout  time.Duration // of one attempt: name, TCP, TLS and HELLO together, per address
	protocol int
	password *string // overrides target.PasswordFile
	tcp      redis.DialFunc
	// addresses are those to try now, instead of target.Addresses: they follow the deployment. None is an error of its own.
	addresses func() []string
	// missed is told of every attempt that failed; nil = nobody.
	onFailure func(err error)
	// replica asks a cluster's replica to answer reads.
	replica bool
	name    string        // what is dialled, for errors where no address is known
	hedges  chan struct{} // tokens for second and further attempts that run at the same time
}

// line is a connection that is ready for requests, and the address that was dialled.
type line struct {
	net.Conn
	address string
}

// errNoServer stands for a server that is not known at present.
var errNoServer = errors.New("no such server is known at present")

// dial tries the target's addresses in order, beginning with number first, and returns the first that answers.
// greeting, unless nil, counts the dials whose TCP connection stands while the server has yet to answer: another would only wait behind it.
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
	one := redis.Dialer{Login: login, TCP: d.tcp, Setup: d.setup()}
	if greeting != nil {
		stands := false
		one.TCP = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := d.tcp(ctx, network, address)
			if stands = err == nil; stands {
				greeting.Add(1)
			}
			return c, err
		}
		defer func() {
			if stands {
				greeting.Add(-1)
			}
		}()
	}
	return one.Dial(ctx, address)
}

func (d *dialer) login() (redis.Login, *redis.DialError) {
	return login(d.target.Username, d.secret, d.target.TLS)
}

// setup are the commands after the login that make a new connection ready.
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

// secret is the password now.
func (d *dialer) secret() (string, error) {
	if d.password != nil {
		return *d.password, nil
	}
	return readPassword(d.target.PasswordFile)
}

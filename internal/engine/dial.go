package engine

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/resp"
)

// stage is how far a dial came.
type stage int

const (
	stageSetup  stage = iota // before the network: a file that cannot be read
	stageTCP                 // resolving and connecting
	stageTLS                 // the TLS handshake
	stageHello               // AUTH, HELLO, SELECT
	stageAnswer              // the server answered with an error reply
)

// dialError is why one attempt to connect failed.
type dialError struct {
	stage   stage
	address string
	command string // of stageAnswer, or PING
	secured bool   // TLS stood
	err     error
}

func (e *dialError) Error() string { return e.address + ": " + e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// class is the kind of the failure, for the record. A handshake that broke is a connection that could not be made: ClassReset is for requests.
func (e *dialError) class() record.Class {
	switch {
	case e.stage == stageAnswer:
		return resp.Classify([]byte(e.err.Error()))
	case errors.Is(e.err, resp.ErrProtocol):
		return record.ClassProtocol
	}
	return record.ClassRefused
}

// isBroken says that an established connection broke.
func isBroken(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// dialer makes connections that are ready for requests.
type dialer struct {
	target   plan.Target
	timeout  time.Duration // of one attempt: name, TCP, TLS and HELLO together, per address
	protocol int
	password *string // overrides target.PasswordFile
	tcp      func(ctx context.Context, network, address string) (net.Conn, error)
	// addresses are those to try now, instead of target.Addresses: they follow the deployment. None is an error of its own.
	addresses func() []string
	// missed is told of every attempt that failed; nil = nobody.
	missed func(err error)
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
		failed = &dialError{stage: stageTCP, address: d.name, err: errNoServer}
	}
	if d.missed != nil && ctx.Err() == nil {
		d.missed(failed)
	}
	return line{}, failed
}

func (d *dialer) dialAddress(ctx context.Context, address string, greeting *atomic.Int64) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	var config *tls.Config
	if d.target.TLS != nil {
		var err error
		if config, err = tlsConfig(d.target.TLS, address); err != nil {
			return nil, &dialError{stage: stageTLS, address: address, err: err}
		}
	}
	hello, err := d.hello()
	if err != nil {
		return nil, &dialError{stage: stageSetup, address: address, err: err}
	}
	raw, err := d.tcp(ctx, "tcp", address)
	if err != nil {
		return nil, &dialError{stage: stageTCP, address: address, err: err}
	}
	if greeting != nil {
		greeting.Add(1)
		defer greeting.Add(-1)
	}
	// Whatever ends the attempt ends what it is waiting for.
	stop := context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })
	c := raw
	fail := func(at stage, command string, err error) (net.Conn, error) {
		stop()
		_ = c.Close()
		return nil, &dialError{stage: at, address: address, command: command, secured: config != nil, err: err}
	}
	if config != nil {
		secured := tls.Client(c, config)
		if err := secured.Handshake(); err != nil {
			return fail(stageTLS, "", err)
		}
		c = secured
	}
	if command, err := converse(c, hello); err != nil {
		if command != "" {
			return fail(stageAnswer, command, err)
		}
		return fail(stageHello, "", err)
	}
	if !stop() {
		return fail(stageHello, "", context.Cause(ctx))
	}
	return c, nil
}

// hello are the commands that make a new connection ready; none when there is nothing to say.
func (d *dialer) hello() ([][]string, error) {
	password, err := d.secret()
	if err != nil {
		return nil, err
	}
	var commands [][]string
	switch {
	case d.target.Username != "":
		commands = append(commands, []string{"AUTH", d.target.Username, password})
	case password != "":
		// With one argument, as the server then says when it has no password at all.
		commands = append(commands, []string{"AUTH", password})
	}
	if d.protocol == 3 {
		commands = append(commands, []string{"HELLO", "3"})
	}
	if d.replica {
		commands = append(commands, []string{"READONLY"})
	}
	if d.target.Database > 0 {
		commands = append(commands, []string{"SELECT", strconv.Itoa(d.target.Database)})
	}
	return commands, nil
}

// secret is the password now: the file is read at every dial, so that a rotated secret is picked up.
func (d *dialer) secret() (string, error) {
	if d.password != nil {
		return *d.password, nil
	}
	if d.target.PasswordFile == "" {
		return "", nil
	}
	b, err := os.ReadFile(d.target.PasswordFile)
	if err != nil {
		return "", err
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

// converse sends the commands in one write and reads their replies. An error reply is returned with the command's name.
func converse(c net.Conn, commands [][]string) (refused string, err error) {
	if len(commands) == 0 {
		return "", nil
	}
	var out []byte
	for _, words := range commands {
		out = resp.AppendCommand(out, words...)
	}
	if _, err := c.Write(out); err != nil {
		return "", err
	}
	in := bufio.NewReaderSize(c, 4096)
	for _, words := range commands {
		v, err := resp.ReadValue(in)
		if err != nil {
			return "", err
		}
		if v.IsError() {
			return words[0], errors.New(v.Text)
		}
	}
	return "", nil
}

// ask sends one command on a connection that nobody else uses and reads the reply, within timeout.
func ask(c net.Conn, timeout time.Duration, request []byte) (resp.Value, error) {
	replies, err := askAll(c, timeout, request, 1)
	if err != nil {
		return resp.Value{}, err
	}
	return replies[0], nil
}

// askAll sends commands that are answered by so many replies.
func askAll(c net.Conn, timeout time.Duration, request []byte, replies int) ([]resp.Value, error) {
	if err := c.SetDeadline(time.Now().Add(timeout)); err != nil {
		return nil, err
	}
	defer func() { _ = c.SetDeadline(time.Time{}) }()
	if _, err := c.Write(request); err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(c, 64<<10)
	values := make([]resp.Value, 0, replies)
	for range replies {
		v, err := resp.ReadValue(in)
		if err != nil {
			return nil, fmt.Errorf("no answer: %w", err)
		}
		values = append(values, v)
	}
	return values, nil
}

package dial

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/resp"
)

// LossClass is the error class of requests that were in flight on a connection that broke.
func LossClass(err error) record.Class {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return record.ClassTimeout
	case errors.Is(err, resp.ErrProtocol), errors.Is(err, ErrUnexpectedReply):
		return record.ClassProtocol
	}
	return record.ClassReset
}

// ErrUnexpectedReply is returned for a reply without a request: client and server are out of sync.
var ErrUnexpectedReply = errors.New("received a reply without a request")

// ClassOf returns the error class of a failed dial. A connection that breaks during the handshake
// is ClassRefused: ClassReset is for requests.
func ClassOf(err error) record.Class {
	e, ok := errors.AsType[*redis.DialError](err)
	switch {
	case !ok:
	case e.Stage == redis.StageAnswer:
		return resp.Classify([]byte(e.Err.Error()))
	case errors.Is(e.Err, resp.ErrProtocol):
		return record.ClassProtocol
	}
	return record.ClassRefused
}

// A Redis port with TLS closes a plain connection without an error, and a plain port waits for more
// input from a TLS client. The other protocol is therefore tried once, to report a precise error.

// WrongPort reports, after a failed dial, whether the port uses TLS although the target does not,
// or the reverse; nil if neither.
func (d *Dialer) WrongPort(ctx context.Context, err error) error {
	failed, ok := errors.AsType[*redis.DialError](err)
	if !ok || !redis.IsBroken(failed.Err) && !redis.IsTimeout(failed.Err) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.Timeout)
	defer cancel()
	switch {
	case failed.Stage == redis.StageHello && !failed.Secured && d.speaksTLS(ctx, failed.Address):
		return &redis.DialError{
			Stage:   redis.StageTLS,
			Address: failed.Address,
			Err:     errSpeaksTLS,
		}
	case failed.Stage == redis.StageTLS && d.speaksPlain(ctx, failed.Address):
		return &redis.DialError{
			Stage:   redis.StageTLS,
			Address: failed.Address,
			Err:     errSpeaksPlain,
		}
	}
	return nil
}

// speaksTLS reports whether the server answers a TLS handshake, even if it rejects this client. No
// data is sent over the connection.
func (d *Dialer) speaksTLS(ctx context.Context, address string) bool {
	c, err := d.TCP(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	err = tls.Client(c, &tls.Config{
		InsecureSkipVerify: true, //nolint:gosec // nothing is sent: does the port speak TLS at all?
		MinVersion:         tls.VersionTLS12,
	}).HandshakeContext(ctx)
	return err == nil || isAlert(err)
}

// speaksPlain reports whether the server answers a PING without TLS in RESP.
func (d *Dialer) speaksPlain(ctx context.Context, address string) bool {
	c := redis.NewConn(0, func(ctx context.Context) (net.Conn, error) {
		return d.TCP(ctx, "tcp",
			address)
	})
	defer c.Close()
	_, err := c.Do(ctx, "PING")
	return err == nil || redis.IsReply(err)
}

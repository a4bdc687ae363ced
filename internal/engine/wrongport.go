package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"net"

	"github.com/redquake/redquake/internal/redis"
)

// Redis tells a client that speaks the other language nothing: it closes, or waits for more. So the other language is tried, once.

// wrongPort says what the port speaks instead, after err; nil when it is not that.
func (d *dialer) wrongPort(ctx context.Context, err error) error {
	failed, ok := errors.AsType[*redis.DialError](err)
	if !ok || !redis.IsBroken(failed.Err) && !redis.IsTimeout(failed.Err) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	switch {
	case failed.Stage == redis.StageHello && !failed.Secured && d.speaksTLS(ctx, failed.Address):
		return &redis.DialError{Stage: redis.StageTLS, Address: failed.Address, Err: errSpeaksTLS}
	case failed.Stage == redis.StageTLS && d.speaksPlain(ctx, failed.Address):
		return &redis.DialError{Stage: redis.StageTLS, Address: failed.Address, Err: errSpeaksPlain}
	}
	return nil
}

// speaksTLS says whether a TLS handshake gets an answer: also one that refuses this client. Nothing is sent over the connection.
func (d *dialer) speaksTLS(ctx context.Context, address string) bool {
	c, err := d.tcp(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	err = tls.Client(c, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}).HandshakeContext(ctx)
	return err == nil || isAlert(err)
}

// speaksPlain says whether a PING in the clear gets an answer in RESP.
func (d *dialer) speaksPlain(ctx context.Context, address string) bool {
	c := redis.NewConn(0, func(ctx context.Context) (net.Conn, error) { return d.tcp(ctx, "tcp", address) })
	defer c.Close()
	_, err := c.Do(ctx, "PING")
	return err == nil || redis.IsReply(err)
}

package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	"github.com/redquake/redquake/internal/redis/resp"
)

// Redis tells a client that speaks the other language nothing: it closes, or waits for more. So the other language is tried, once.

// wrongPort says what the port speaks instead, after err; nil when it is not that.
func (d *dialer) wrongPort(ctx context.Context, err error) error {
	failed, ok := errors.AsType[*dialError](err)
	if !ok || !isBroken(failed.err) && !isTimeout(failed.err) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	switch {
	case failed.stage == stageHello && !failed.secured && d.speaksTLS(ctx, failed.address):
		return &dialError{stage: stageTLS, address: failed.address, err: errSpeaksTLS}
	case failed.stage == stageTLS && d.speaksPlain(ctx, failed.address):
		return &dialError{stage: stageTLS, address: failed.address, err: errSpeaksPlain}
	}
	return nil
}

var (
	errSpeaksTLS   = errors.New("the port speaks TLS, but the target has no tls settings")
	errSpeaksPlain = errors.New("the port answers without TLS, but the target has tls settings")
)

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
	c, err := d.tcp(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	deadline, _ := ctx.Deadline()
	_, err = ask(c, time.Until(deadline), resp.AppendCommand(nil, "PING"))
	return err == nil
}

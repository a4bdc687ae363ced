package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// ErrNotReleased is returned if the record was not released in time.
var ErrNotReleased = errors.New("agent: the record was not released in time")

// Serve runs an agent: it prepares the load immediately, serves the operator's requests, runs the
// load from the start instant, and keeps the record until it is released or Config.Linger has
// passed.
//
// When ctx ends (SIGTERM) the load ends, and the record can be pulled for Config.Drain. The error
// is nil after a finished load and its release; a *plan.Error if the load failed (after the release
// or the linger time, so that the reason can be read);
// ErrNotReleased if a finished load's record was not released; otherwise it is why the agent could
// not listen or is misconfigured.
func Serve(ctx context.Context, config Config) error {
	if err := config.check(); err != nil {
		return err
	}
	cfg := config.withDefaults()
	listener := cfg.Listener
	if listener == nil {
		var err error
		listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen)
		if err != nil {
			return fmt.Errorf("agent: listen: %w", err)
		}
	}
	p := newProcess(cfg)
	server := &http.Server{
		Handler:           p.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      MaxWait + 30*time.Second,
		IdleTimeout:       5 * time.Minute,
		MaxHeaderBytes:    8 << 10,
		ErrorLog:          slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
	}
	secure := tls.NewListener(listener, &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{cfg.Certificate},
		NextProtos:   []string{"http/1.1"},
	})
	served := make(chan error, 1)
	go func() { served <- server.Serve(secure) }()

	loadCtx, endLoad := context.WithCancel(ctx)
	defer endLoad()
	go p.work(loadCtx)

	err := p.await(ctx, served)
	// Leave time for the response to the release, then close all connections.
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 500*time.Millisecond)
	defer cancel()
	if server.Shutdown(closing) != nil {
		server.Close()
	}
	return err
}

// await returns when the agent may exit, with its result.
func (p *process) await(ctx context.Context, served <-chan error) error {
	select {
	case <-p.ended:
	case <-ctx.Done():
	case err := <-served:
		return fmt.Errorf("agent: serve: %w", err)
	}
	linger := time.NewTimer(p.cfg.Linger)
	defer linger.Stop()
	done := ctx.Done()
	for {
		select {
		case <-p.released:
			return p.failure()
		case <-linger.C:
			if err := p.failure(); err != nil {
				return err
			}
			return ErrNotReleased
		case <-done:
			done = nil
			linger.Reset(min(p.cfg.Drain, p.cfg.Linger))
		case err := <-served:
			return fmt.Errorf("agent: serve: %w", err)
		}
	}
}

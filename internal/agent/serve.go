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

// ErrNotReleased says that nobody came for the record in time.
var ErrNotReleased = errors.New("agent: the record was not released in time")

// Serve is an agent's whole life: it prepares the load at once, answers the operator, runs the load from the instant it is told, and
// keeps the record until it is released or the linger is over.
//
// When ctx ends (SIGTERM) the load ends, and the record can be pulled for the drain's length more. The error is nil after a finished load
// and its release; a *engine.Error when the load failed (after the release or the linger, so that the reason could be read);
// ErrNotReleased when a finished load's record was not released; else why it could not listen or is badly configured.
func Serve(ctx context.Context, config Config) error {
	cfg, err := config.withDefaults()
	if err != nil {
		return err
	}
	listener := cfg.Listener
	if listener == nil {
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

	err = p.await(ctx, served)
	// A moment for the answer to the release; then everything is cut.
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 500*time.Millisecond)
	defer cancel()
	if server.Shutdown(closing) != nil {
		server.Close()
	}
	return err
}

// await returns when the agent may exit, and with what.
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

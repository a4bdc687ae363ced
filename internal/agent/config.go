package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/topology"
)

// Runner is the load itself; *engine.Runner is one.
type Runner interface {
	// Prepare connects and prefills. It may take long; progress is called with human-readable
	// messages.
	Prepare(ctx context.Context, progress func(string)) error
	// Run waits for start, runs the load, and calls sink with every interval in the order of the grid,
	// from index 0, including empty ones.
	// The interval may be reused once sink has returned. Run returns after the last interval, soon
	// after ctx ends.
	Run(ctx context.Context, start time.Time, sink func(*record.Interval)) error
	// Server returns the first reading of INFO, nil before. It is safe for use during Prepare and Run.
	Server() *record.Server
}

// layouter is a Runner that reports the discovered topology; nil before. It is safe for use during
// Prepare and Run.
type layouter interface{ Layout() *topology.Map }

// noter is a Runner that reports what it has found in the deployment. It is safe for use during
// Prepare and Run.
type noter interface{ Notes() []string }

// waiter is a Runner that reports what its Prepare waits for; nil if for nothing. It is safe for
// use during Prepare.
type waiter interface{ Waiting() *plan.Error }

// starter is a Runner that reports when its load actually began; zero before. It is safe for use
// during Run.
type starter interface{ StartedAt() time.Time }

// stepper is a Runner whose rate can be changed during Run.
type stepper interface {
	Step(at time.Duration, rate float64) error
}

// verifier is a Runner that can read back acknowledged writes. Verify is called after Run, if the
// plan enables it.
// A nil result means that there was nothing to verify.
type verifier interface {
	Verify(ctx context.Context, progress func(string)) (*record.Ledger, error)
}

// guarantor is a Runner that finds out how often was false what applications count on. Guarantees is
// called after Run; nil = the workload has none.
type guarantor interface{ Guarantees() *record.Guarantees }

// cleaner is a Runner that can remove the keys of the load. CleanUp is called after Run and Verify,
// when the other pods have ended as well, if the plan enables it.
type cleaner interface {
	CleanUp(ctx context.Context, progress func(string)) (removed int64, err error)
}

// Defaults of Config.
const (
	DefaultLinger      = 15 * time.Minute
	DefaultDrain       = 20 * time.Second
	DefaultMaxBuffered = 64 << 20
	DefaultVerifyLimit = 5 * time.Minute
)

// Config are the parameters of an agent. Plan, Runner, Token and Certificate must be set.
type Config struct {
	Plan        *plan.Plan
	Pod         int // in [0, Plan.Pods)
	Runner      Runner
	Token       string
	Certificate tls.Certificate
	Sidecar     Sidecar // zero where there is none

	Listen   string       // host:port; default ":7379"
	Listener net.Listener // a TCP listener to use instead of Listen; Serve closes it
	// how long an agent waits for its release after the end of the load; default 15 min
	Linger time.Duration
	Drain  time.Duration // the same once ctx has ended; default 20 s
	// bytes of encoded intervals kept for pulling; beyond it the oldest are dropped and count as Lost;
	// default 64 MiB
	MaxBuffered int
	VerifyLimit time.Duration // how long reading the ledger back may take; default 5 min
	// zero of the pod's clock, with a monotonic reading; default: the call of Serve
	Epoch  time.Time
	Now    func() time.Time // the pod's clock; default time.Now
	Logger *slog.Logger     // default: slog.Default()
}

// check returns an error for a missing or invalid field that has no default.
func (c *Config) check() error {
	switch {
	case c.Plan == nil || c.Runner == nil:
		return errors.New("agent: no plan or no runner")
	case c.Pod < 0 || c.Pod >= c.Plan.Pods:
		return fmt.Errorf("agent: pod %d is not one of the plan's %d", c.Pod, c.Plan.Pods)
	case c.Token == "":
		return errors.New("agent: no token")
	case len(c.Certificate.Certificate) == 0:
		return errors.New("agent: no certificate")
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Listen == "" {
		c.Listen = fmt.Sprintf(":%d", Port)
	}
	if c.Linger == 0 {
		c.Linger = DefaultLinger
	}
	if c.Drain == 0 {
		c.Drain = DefaultDrain
	}
	if c.MaxBuffered == 0 {
		c.MaxBuffered = DefaultMaxBuffered
	}
	if c.VerifyLimit == 0 {
		c.VerifyLimit = DefaultVerifyLimit
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Epoch.IsZero() {
		c.Epoch = c.Now()
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

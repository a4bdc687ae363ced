package collect

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/record/merged"
)

// Open creates a session, which polls the pods passed to SetPods. It starts and pulls nothing
// before Start or Resume.
func Open(config Config) (*Session, error) {
	cfg := config.withDefaults()
	switch {
	case cfg.Run == "" || cfg.Pods < 1 || cfg.Step <= 0 || len(cfg.Ops) == 0:
		return nil, errors.New("collect: run, pods, step and operations must be set")
	case cfg.Store == nil:
		return nil, errors.New("collect: no store")
	}
	secure, err := agent.ClientTLS(cfg.Credentials.CertificatePEM)
	if err != nil {
		return nil, err
	}
	s := &Session{
		cfg:  cfg,
		base: cfg.Now(),
		wall: wallClock{base: cfg.Wall().Round(0)},
		// no proxy, even if set in the environment; HTTP/1.1 with one persistent connection per pod
		transport: &http.Transport{
			DialContext:            cfg.Dial,
			TLSClientConfig:        secure,
			TLSHandshakeTimeout:    5 * time.Second,
			MaxIdleConns:           0,
			MaxIdleConnsPerHost:    2,
			IdleConnTimeout:        2 * time.Minute,
			DisableCompression:     true,
			MaxResponseHeaderBytes: 16 << 10,
		},
		changed: make(chan struct{}, 1),
		saveNow: make(chan struct{}, 1),
		series:  merged.New(cfg.Run, time.Time{}, cfg.Step, cfg.Ops, cfg.Pods),
	}
	s.series.SetTallies(cfg.Tallies)
	if cfg.ReadOnly != nil {
		s.series.SetReadOnly(cfg.ReadOnly)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for i := range cfg.Pods {
		p := &pod{
			index:            i,
			ledgerWanted:     cfg.Ledger,
			poke:             make(chan struct{}, 1),
			unreachableSince: s.base,
		}
		p.ctx, p.cancel = context.WithCancel(s.ctx)
		s.pods = append(s.pods, p)
		s.loops.Go(func() { s.follow(p) })
	}
	s.loops.Go(s.keepSaving)
	return s, nil
}

func (c Config) withDefaults() Config {
	setDuration := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	setDuration(&c.PollEvery, DefaultPollEvery)
	setDuration(&c.PullEvery,
		min(max(DefaultPullEvery, time.Duration(c.Pods)*pullsApart), maxPullEvery))
	setDuration(&c.StatusEvery, max(DefaultStatusEvery, 10*c.PullEvery))
	setDuration(&c.CheckpointEvery, DefaultCheckpointEvery)
	setDuration(&c.RequestTimeout, DefaultRequestTimeout)
	if c.CheckpointLimit == 0 {
		c.CheckpointLimit = DefaultCheckpointLimit
	}
	if c.Memory == nil {
		c.Memory = &Memory{}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Wall == nil {
		c.Wall = c.Now
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{Timeout: 5 * time.Second}).DialContext
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Defaults of Config.
const (
	DefaultPollEvery       = 250 * time.Millisecond
	DefaultPullEvery       = 500 * time.Millisecond
	DefaultStatusEvery     = 5 * time.Second
	DefaultCheckpointEvery = 10 * time.Second
	DefaultCheckpointLimit = 900 << 10
	DefaultMemoryLimit     = 64 << 20
	DefaultRequestTimeout  = 10 * time.Second
)

// The cost of a pull hardly depends on the number of intervals, so with many pods each is pulled
// less often.
const (
	pullsApart   = 2 * time.Millisecond
	maxPullEvery = 2 * time.Second
)

// Close ends the session. It does not change pods or store: intervals without a checkpoint are kept
// by the pods.
func (s *Session) Close() {
	s.cancel()
	s.loops.Wait()
	s.transport.CloseIdleConnections()
	s.cfg.Memory.leave(s)
}

// SetPods sets the addresses of pods. Pods that are not passed keep their address.
func (s *Session) SetPods(pods []Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, named := range pods {
		if named.Index < 0 || named.Index >= len(s.pods) {
			continue
		}
		p := s.pods[named.Index]
		p.name = named.Name
		if p.address != named.Address {
			p.address = named.Address
			p.known = false // the status must be read first, as the address may belong to another pod
			wake(p.poke)
		}
	}
}

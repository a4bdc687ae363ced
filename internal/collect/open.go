package collect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/collect/clocks"
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
		wall: clocks.NewWall(cfg.Wall()),
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
		record: recording{
			series: merged.New(cfg.Run, time.Time{}, cfg.Step, cfg.Ops, cfg.Pods),
		},
	}
	s.record.series.SetTallies(cfg.Tallies)
	if cfg.ReadOnly != nil {
		s.record.series.SetReadOnly(cfg.ReadOnly)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for i := range cfg.Pods {
		p := &pod{
			index:        i,
			resultWanted: cfg.Wanted != Wanted{},
			poke:         make(chan struct{}, 1),
			contact:      contact{unreachableSince: s.base},
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
	setDuration(&c.Checkpoints.Every, DefaultCheckpointEvery)
	setDuration(&c.RequestTimeout, DefaultRequestTimeout)
	setDuration(&c.Ahead, defaultAhead)
	if c.Checkpoints.Limit == 0 {
		c.Checkpoints.Limit = DefaultCheckpointLimit
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
	defaultAhead           = time.Minute
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

// Resume continues a run whose start instant was set before the operator restarted: it loads the
// checkpoint, if there is one, and continues to pull from its end. Pods that have not accepted the
// start instant yet can receive it by Start with the same instant.
// It fails if the store fails (retry), or if the checkpoint cannot be used (ErrCheckpoint); nothing
// is pulled then.
func (s *Session) Resume(ctx context.Context, start time.Time) error {
	s.compareClocks()
	err := s.resume(ctx, start)
	s.settle()
	return err
}

func (s *Session) resume(ctx context.Context, start time.Time) error {
	s.saving.Lock()
	defer s.saving.Unlock()
	s.mu.Lock()
	begun := s.start.set
	s.mu.Unlock()
	if begun {
		return nil
	}
	data, err := s.cfg.Store.Load(ctx)
	if err != nil {
		return fmt.Errorf("collect: load the checkpoint: %w", err)
	}
	s.record.Lock()
	defer s.record.Unlock()
	if len(data) > 0 {
		if err := s.restore(data); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.continuePods()
	s.begin(start)
	return nil
}

// restore replaces the record by that of a checkpoint. The caller holds record.
func (s *Session) restore(data []byte) error {
	series, err := merged.Decode(data)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCheckpoint, err)
	}
	if series.Run != s.cfg.Run || series.PodStep != s.cfg.Step || series.Pods != s.cfg.Pods ||
		!slices.Equal(series.Ops, s.cfg.Ops) ||
		!slices.Equal(series.Tallies, s.cfg.Tallies) {
		return fmt.Errorf("%w: it belongs to run %q with %d pods and interval %v", ErrCheckpoint,
			series.Run, series.Pods, series.PodStep)
	}
	s.record.series, s.record.compact = series, nil
	return nil
}

// continuePods sets the positions of the pods to the end of the record. The caller holds record and
// mu.
func (s *Session) continuePods() {
	for i, p := range s.pods {
		p.progress.pulled = uint64(s.record.series.Next(i))
		p.progress.acked = p.progress.pulled
		p.progress.closed = s.record.ended(i)
		if s.record.series.IsLost(i) && !p.gone {
			p.gone = true
			p.cancel()
		}
		if p.gone && !p.progress.closed {
			s.record.merged(func(series *merged.Series) { series.Lose(i) })
			s.record.grown = true
		}
	}
}

// ErrCheckpoint is returned for a stored checkpoint that cannot be read, or that belongs to another
// run.
var ErrCheckpoint = errors.New("collect: the checkpoint cannot be used")

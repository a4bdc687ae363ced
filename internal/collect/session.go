// Package collect is the operator's side of a load test: it aligns the clocks of the load pods, starts them at one instant, pulls what
// they record, and merges it into one series that survives a restart of the operator: no interval is lost, none counts twice.
//
// An interval is acknowledged to its pod only when a checkpoint that holds it has been stored; until then the pod keeps it. After a
// restart a session takes up the checkpoint and pulls from where it ends.
package collect

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/record"
)

// Store keeps one checkpoint durably.
type Store interface {
	// Load returns what was saved last; nil data and no error when nothing ever was.
	Load(ctx context.Context) ([]byte, error)
	// Save replaces it. The data must be durable when it returns nil, and is not kept by reference.
	Save(ctx context.Context, data []byte) error
}

// Config is what a session needs. Run, Step, Ops, Pods, Credentials and Store must be set.
type Config struct {
	Run         string        // load.Plan.Run
	Step        time.Duration // load.Plan.Interval
	Ops         []string      // load.Plan.Operations()
	Tallies     []string      // load.Plan.Tallies()
	Pods        int           // load.Plan.Pods
	Credentials agent.Credentials
	Store       Store
	Ledger      bool // the plan verifies, and its result is still wanted: a pod is complete only once it has told it

	PollEvery       time.Duration // a pod's status until its load runs; default 250 ms
	PullEvery       time.Duration // a pod's intervals; default 500 ms, of more than 250 pods more, to 2 s: at most 500 pulls a second up to 1,000 pods
	StatusEvery     time.Duration // a pod's status while its load runs; default 5 s, or 10 times PullEvery where that is more
	CheckpointEvery time.Duration // default 10 s
	CheckpointLimit int           // bytes; default 900 KiB
	MemoryLimit     int           // bytes that the series may take before it is coarsened; default 128 MiB
	RequestTimeout  time.Duration // of one request to a pod; default 10 s

	Now    func() time.Time                                                     // with a monotonic reading; default time.Now
	Dial   func(ctx context.Context, network, address string) (net.Conn, error) // default: a net.Dialer
	Logger *slog.Logger                                                         // default slog.Default()
}

// Pod is where a load pod is reached.
type Pod struct {
	Index   int    // in [0, Config.Pods)
	Name    string // for people
	Address string // host:port; "" = not known yet
}

// Session collects one load test. All methods are safe for concurrent use.
type Session struct {
	cfg       Config
	base      time.Time // zero of local instants
	transport *http.Transport
	ctx       context.Context // ends with Close
	cancel    context.CancelFunc
	loops     sync.WaitGroup
	changed   chan struct{}
	saveNow   chan struct{}

	mu       sync.Mutex // guards what follows, and every pod
	pods     []*pod
	begun    bool      // a start instant is decided: intervals are pulled
	start    time.Time // the decided instant, as it was given
	startAt  int64     // the same, local
	saved    time.Time
	storeErr error
	finished bool

	record  sync.RWMutex // guards the series; taken before mu where both are
	series  *record.Series
	compact *record.Series // the same record, coarser: what checkpoints are made of; nil as long as the record itself fits into one
	grown   bool           // since the last checkpoint

	decoded sync.Pool // *[]record.Interval: memory to decode into

	saving sync.Mutex // one checkpoint at a time; taken before record and mu
}

// Open starts a session: it watches the pods that SetPods names. Nothing is started or pulled before Start or Resume.
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
		transport: &http.Transport{ // no proxy, whatever the environment says; HTTP/1.1: one connection per pod, kept
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
		series:  record.NewSeries(cfg.Run, time.Time{}, cfg.Step, cfg.Ops, cfg.Pods),
	}
	s.series.SetTallies(cfg.Tallies)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for i := range cfg.Pods {
		p := &pod{index: i, ledgerWanted: cfg.Ledger, poke: make(chan struct{}, 1), unreachableSince: s.base}
		p.ctx, p.cancel = context.WithCancel(s.ctx)
		s.pods = append(s.pods, p)
		s.loops.Go(func() { s.follow(p) })
	}
	s.loops.Go(s.keepSaving)
	return s, nil
}

// Defaults of Config.
const (
	DefaultPollEvery       = 250 * time.Millisecond
	DefaultPullEvery       = 500 * time.Millisecond
	DefaultStatusEvery     = 5 * time.Second
	DefaultCheckpointEvery = 10 * time.Second
	DefaultCheckpointLimit = 900 << 10
	DefaultMemoryLimit     = 128 << 20
	DefaultRequestTimeout  = 10 * time.Second
)

// A pull costs the same whether it brings one interval or twenty, so of many pods each is pulled more rarely.
const (
	pullsApart   = 2 * time.Millisecond
	maxPullEvery = 2 * time.Second
)

func (c Config) withDefaults() Config {
	setDuration := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	setDuration(&c.PollEvery, DefaultPollEvery)
	setDuration(&c.PullEvery, min(max(DefaultPullEvery, time.Duration(c.Pods)*pullsApart), maxPullEvery))
	setDuration(&c.StatusEvery, max(DefaultStatusEvery, 10*c.PullEvery))
	setDuration(&c.CheckpointEvery, DefaultCheckpointEvery)
	setDuration(&c.RequestTimeout, DefaultRequestTimeout)
	if c.CheckpointLimit == 0 {
		c.CheckpointLimit = DefaultCheckpointLimit
	}
	if c.MemoryLimit == 0 {
		c.MemoryLimit = DefaultMemoryLimit
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Dial == nil {
		c.Dial = (&net.Dialer{Timeout: 5 * time.Second}).DialContext
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// Close ends the session without touching the pods or the store: what was not yet checkpointed is still at the pods.
func (s *Session) Close() {
	s.cancel()
	s.loops.Wait()
	s.transport.CloseIdleConnections()
}

// SetPods says where pods are reached. Pods that are not named keep what is known of them; a session follows a pod that moves.
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
			p.known = false // who answers there has to be asked first
			wake(p.poke)
		}
	}
}

// Lose says that a pod is gone for good: it is no longer waited for, and its record ends with what was pulled.
func (s *Session) Lose(index int) {
	if index < 0 || index >= len(s.pods) {
		return
	}
	s.record.Lock()
	s.mu.Lock()
	p := s.pods[index]
	if !p.gone {
		p.gone = true
		p.cancel()
		s.merged(func(series *record.Series) { series.Lose(index) })
		s.grown = true
		wake(s.changed)
	}
	s.mu.Unlock()
	s.record.Unlock()
	s.settle()
}

// Read gives the merged series to f, which must not change or keep it. Pulled intervals wait until f returns.
func (s *Session) Read(f func(*record.Series)) {
	s.record.RLock()
	defer s.record.RUnlock()
	f(s.series)
}

// Changed receives after something in Status changed that a decision may hang on: a state, a pod's reachability, a problem, the end.
// Growth of the record alone does not count. Several changes may give one receive.
func (s *Session) Changed() <-chan struct{} { return s.changed }

// wake fills a channel of capacity one.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

//go:build integration

package controllers

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/redquake/redquake/internal/topology"
)

var errDead = errors.New("this operator process is dead")

// write is one write of an operator to the API server.
type write struct {
	verb   string // create update patch delete patch-status
	object client.Object
	at     time.Time
}

// spy sees every write of an operator. before may refuse it; after sees what came back.
type spy struct {
	before func(write) error
	after  func(write)
}

// operator is one operator process: both reconcilers in a manager, as main wires them, for one namespace.
type operator struct {
	sessions *Sessions
	servers  *topology.Real
	dead     atomic.Bool   // from here on nothing reaches the API server
	died     chan struct{} // closed by crash
	once     sync.Once
	cancel   context.CancelFunc
	done     chan struct{}
}

// crash ends the process's way to the world at once. Only stop takes it down.
func (o *operator) crash() {
	o.once.Do(func() {
		o.dead.Store(true)
		close(o.died)
	})
}

// stop ends the process.
func (o *operator) stop() {
	o.cancel()
	<-o.done
	o.sessions.Close()
	o.servers.Close()
}

// wiring is what an operator process is made of.
type wiring struct {
	config        *rest.Config
	namespace     string // the only one that it watches
	home          string // its own
	sessions      *Sessions
	servers       topology.Servers
	tests, faults interceptor.Funcs // between the reconcilers and the API server
}

// manager is both reconcilers in a manager, as main wires them.
func (w *wiring) manager() (ctrl.Manager, error) {
	options := ManagerOptions(w.namespace)
	options.Metrics = metricsserver.Options{BindAddress: "0"}
	options.Controller = config.Controller{SkipNameValidation: new(true)}
	options.NewClient = func(config *rest.Config, options client.Options) (client.Client, error) {
		return client.NewWithWatch(config, options)
	}
	manager, err := ctrl.NewManager(rest.CopyConfig(w.config), options)
	if err != nil {
		return nil, err
	}
	between := func(funcs interceptor.Funcs) func(client.Client) client.Client {
		return func(c client.Client) client.Client { return interceptor.NewClient(c.(client.WithWatch), funcs) }
	}
	return manager, Setup(manager, Settings{
		Image: "redquake:test", Home: w.home, Sessions: w.sessions, Servers: w.servers,
		TestClient: between(w.tests), FaultClient: between(w.faults),
	})
}

func startOperator(p *place, s spy) *operator {
	p.t.Helper()
	o := &operator{sessions: NewSessions(), servers: topology.NewReal(), died: make(chan struct{}), done: make(chan struct{})}
	wired := wiring{
		config: p.config, namespace: p.namespace, home: p.home(), sessions: o.sessions, servers: o.servers,
		tests: o.intercept(s), faults: o.intercept(s),
	}
	manager, err := wired.manager()
	if err != nil {
		p.t.Fatal(err)
	}
	var ctx context.Context
	ctx, o.cancel = context.WithCancel(context.Background())
	go func() {
		defer close(o.done)
		if err := manager.Start(ctx); err != nil {
			p.t.Errorf("the manager: %v", err)
		}
	}()
	p.t.Cleanup(o.stop)
	return o
}

func (o *operator) intercept(s spy) interceptor.Funcs {
	do := func(verb string, object client.Object, act func() error) error {
		w := write{verb, object, time.Now()}
		if o.dead.Load() {
			return errDead
		}
		if s.before != nil {
			if err := s.before(w); err != nil {
				return err
			}
		}
		err := act()
		if err == nil && s.after != nil {
			s.after(w)
		}
		if o.dead.Load() {
			return errDead
		}
		return err
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if o.dead.Load() {
				return errDead
			}
			return c.Get(ctx, key, object, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return do("create", object, func() error { return c.Create(ctx, object, options...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			return do("update", object, func() error { return c.Update(ctx, object, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return do("delete", object, func() error { return c.Delete(ctx, object, options...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return do("patch", object, func() error { return c.Patch(ctx, object, patch, options...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			return do("patch-"+sub, object, func() error { return c.SubResource(sub).Patch(ctx, object, patch, options...) })
		},
	}
}

// keepRunning starts a new process whenever one has crashed, until the test ends, as a Deployment does.
func keepRunning(p *place, s func(o func() *operator) spy) *atomic.Int32 {
	var starts atomic.Int32
	var mu sync.Mutex
	var current *operator
	get := func() *operator {
		mu.Lock()
		defer mu.Unlock()
		return current
	}
	start := func() {
		starts.Add(1)
		mu.Lock() // held until the process is known: its first write may come at once
		defer mu.Unlock()
		current = startOperator(p, s(get))
	}
	start()
	over := make(chan struct{})
	stopped := make(chan struct{})
	p.t.Cleanup(func() { close(over); <-stopped })
	go func() {
		defer close(stopped)
		for {
			select {
			case <-over:
				return
			case <-get().died:
				get().stop()
				start()
			}
		}
	}()
	return &starts
}

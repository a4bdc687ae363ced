//go:build integration

package controllers

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/redquake/redquake/controllers/dashboard"
	"github.com/redquake/redquake/controllers/fault"
	"github.com/redquake/redquake/internal/egress"
	"github.com/redquake/redquake/internal/metrics"
	"github.com/redquake/redquake/internal/notify"
	"github.com/redquake/redquake/internal/prometheus"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/runs"
)

// wiring has the settings of an operator process.
type wiring struct {
	config        *rest.Config
	namespace     string // the only one that it watches
	home          string // its own
	sessions      *runs.Registry
	servers       topology.Servers
	reverters     *fault.Reverters
	metrics       *metrics.Metrics
	tests, faults interceptor.Funcs // between the reconcilers and the API server
	lease         bool              // it acts only while it leads
	logger        logr.Logger
	dashboard     *dashboard.Server
}

// newManager returns a manager as main makes it.
func (w *wiring) newManager() (ctrl.Manager, error) {
	options := ManagerOptions(w.namespace)
	options.Logger = w.logger
	options.Metrics = metricsserver.Options{BindAddress: "0"}
	options.LeaderElection, options.LeaderElectionID, options.LeaderElectionNamespace = w.lease, leaseName, w.namespace
	options.LeaseDuration, options.RenewDeadline, options.RetryPeriod = new(3*time.Second), new(2*time.Second), new(500*time.Millisecond)
	options.NewClient = func(config *rest.Config, options client.Options) (client.Client, error) {
		return client.NewWithWatch(config, options)
	}
	return ctrl.NewManager(rest.CopyConfig(w.config), options)
}

// leaseName is the name of the Lease by which operators elect a leader, in the namespace of the place.
const leaseName = "redquake"

func (w *wiring) settings() Settings {
	between := func(funcs interceptor.Funcs) func(client.Client) client.Client {
		return func(c client.Client) client.Client { return interceptor.NewClient(c.(client.WithWatch), funcs) }
	}
	return Settings{
		Image: "redquake:test", OperatorNamespace: w.home, Namespaces: []string{w.namespace}, Runs: w.sessions, Servers: w.servers, Reverters: w.reverters, Metrics: w.metrics,
		Prometheus: prometheus.Client{Hosts: egress.Hosts{"127.0.0.1"}}, Notify: notify.Client{Hosts: egress.Hosts{"127.0.0.1"}, Timeout: 10 * time.Second},
		TestClient: between(w.tests), FaultClient: between(w.faults), Dashboard: w.dashboard,
	}
}

// startManager starts an operator for one namespace: a manager with both reconcilers, as main sets it up.
func (p *place) startManager(s spy) *operator {
	p.t.Helper()
	o := newOperator(time.Now)
	servers := topology.NewReal()
	wired := wiring{
		config: p.config, namespace: p.namespace, home: p.home(), sessions: o.sessions, servers: servers, reverters: fault.NewReverters(nil),
		tests: o.Intercept(s), faults: o.Intercept(s), logger: p.logger, metrics: o.metrics, dashboard: p.dashboard,
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := Run(ctx, wired.settings(), wired.newManager); err != nil {
			p.t.Errorf("the manager: %v", err)
		}
	}()
	o.end = func() {
		cancel()
		<-done
		wired.reverters.Close()
		o.sessions.Close()
		servers.Close()
	}
	return o
}

//go:build integration

package operatortest

import (
	"context"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/redquake/redquake/controllers"
	"github.com/redquake/redquake/internal/egress"
	"github.com/redquake/redquake/internal/faultrun"
	"github.com/redquake/redquake/internal/notify"
	"github.com/redquake/redquake/internal/powerhook"
	"github.com/redquake/redquake/internal/prometheus"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/runs"
)

// LeaseName is the name of the Lease by which operators elect a leader, in the namespace of the
// place.
const LeaseName = "redquake"

// NewProcess returns an operator process for the namespace of a place, as main makes it: what tests
// need beside that are calls between its reconcilers and the API server.
func NewProcess(
	config *rest.Config, namespace, home string, tests, faults interceptor.Funcs,
) *controllers.Process {
	between := func(funcs interceptor.Funcs) func(client.Client) client.Client {
		return func(c client.Client) client.Client {
			return interceptor.NewClient(c.(client.WithWatch), funcs)
		}
	}
	return &controllers.Process{
		Config: config, MetricsServer: metricsserver.Options{BindAddress: "0"},
		Settings: controllers.Settings{
			Image:             "redquake:test",
			OperatorNamespace: home,
			Namespaces:        []string{namespace},
			Runs:              runs.NewRegistry(),
			Servers:           topology.NewReal(),
			Sessions:          faultrun.NewRegistry(nil),
			Prometheus:        prometheus.Client{Hosts: egress.Hosts{"127.0.0.1"}},
			Notify:            notify.Client{Hosts: egress.Hosts{"127.0.0.1"}, Timeout: 10 * time.Second},
			TestClient:        between(tests),
			FaultClient:       between(faults),
		},
	}
}

// startManager starts an operator for one namespace: a manager with both reconcilers, as main sets
// it up.
func (p *Place) startManager(s Spy) *Operator {
	p.T.Helper()
	o := NewOperator(time.Now)
	servers := topology.NewReal()
	process := NewProcess(p.Config, p.Namespace, p.Home(), o.Intercept(s), o.Intercept(s))
	process.Runs = o.Sessions
	process.Servers = servers
	process.Metrics = o.Metrics
	process.Dashboard = p.Dashboard
	process.Logger = p.Logger
	if p.PowerHook != "" {
		hook, err := powerhook.New(p.PowerHook, "")
		if err != nil {
			p.T.Fatal(err)
		}
		process.Power = hook
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := process.Run(ctx); err != nil {
			p.T.Errorf("the manager: %v", err)
		}
	}()
	o.End = func() {
		cancel()
		<-done
		process.Sessions.Close()
		o.Sessions.Close()
		servers.Close()
	}
	return o
}

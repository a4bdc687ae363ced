package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Process is an operator process. Main runs it with the values of its flags, tests with shorter
// limits: there is no other wiring. Settings are what belongs to the process and outlives a
// manager. All else that a manager needs is made anew for each.
type Process struct {
	Settings
	Config        *rest.Config
	Election      *Election             // nil = it acts without being elected
	MetricsServer metricsserver.Options // where the metrics are served
	ProbeAddress  string                // of /healthz and /readyz; "" = they are not served
	Logger        logr.Logger           // of the managers; the zero value is controller-runtime's
}

// Election is how processes elect the one that acts.
type Election struct {
	Namespace, Name string        // of the Lease
	LeaseDuration   time.Duration // for which others leave a leader that does not renew it
	RenewDeadline   time.Duration // after which a leader that cannot renew it gives up
	RetryPeriod     time.Duration // between two tries to renew it, or to take it
}

// beforeNextManager is the time between the end of a manager and the start of the next.
const beforeNextManager = time.Second

// Run runs a manager until ctx ends. A manager also ends when it loses the leadership, or without
// the API server. Then this process goes on with another one, if it has led, or has faults to
// revert: a kubelet that starts a container again waits longer each time, up to five minutes, in
// which nobody acts. One that has never led may not be able to, and ends: Run returns its error.
func (p *Process) Run(ctx context.Context) error {
	hasLed := false
	for {
		led, err := p.runManager(ctx)
		hasLed = hasLed || led
		pending := p.Sessions.Pending()
		if ctx.Err() != nil || !hasLed && len(pending) == 0 {
			return err
		}
		ctrl.Log.Error(err, "the manager has ended; this process goes on with another one",
			"faults to revert", pending)
		p.Runs.Close() // whoever leads now collects the records
		wait, stop := context.WithTimeout(ctx, beforeNextManager)
		<-wait.Done()
		stop()
	}
}

// runManager runs a manager to its end, and returns whether it has led.
func (p *Process) runManager(ctx context.Context) (led bool, err error) {
	mgr, err := p.newManager()
	if err != nil {
		return false, fmt.Errorf("create manager: %w", err)
	}
	health := newHealth(clock.RealClock{}.Now)
	if p.Election != nil {
		health.lease = &client.ObjectKey{Namespace: p.Election.Namespace, Name: p.Election.Name}
	}
	if err := errors.Join(mgr.AddHealthzCheck("reconciles", health.within(stalledDead)),
		mgr.AddReadyzCheck("reconciles", health.within(StalledUnready))); err != nil {
		return false, fmt.Errorf("set up the probes: %w", err)
	}
	if err := setup(mgr, p.Settings, health); err != nil {
		return false, fmt.Errorf("set up controllers: %w", err)
	}
	err = mgr.Start(ctx)
	select {
	case <-mgr.Elected():
		led = true
	default:
	}
	if err != nil {
		return led, fmt.Errorf("run manager: %w", err)
	}
	return led, nil
}

// newManager returns a manager that shares nothing with an earlier one: controller-runtime writes
// into its options.
func (p *Process) newManager() (ctrl.Manager, error) {
	options := managerOptions(p.Namespaces, p.Election)
	options.Logger = p.Logger
	options.Metrics = p.MetricsServer
	options.HealthProbeBindAddress = p.ProbeAddress
	if e := p.Election; e != nil {
		options.LeaderElection, options.LeaderElectionReleaseOnCancel = true, true
		options.LeaderElectionNamespace = e.Namespace
		options.LeaderElectionID = e.Name
		options.LeaseDuration = new(e.LeaseDuration)
		options.RenewDeadline = new(e.RenewDeadline)
		options.RetryPeriod = new(e.RetryPeriod)
	}
	options.NewClient = func(config *rest.Config, options client.Options) (client.Client, error) {
		return client.NewWithWatch(config, options) // that can be wrapped by an interceptor
	}
	return ctrl.NewManager(rest.CopyConfig(p.Config), options)
}

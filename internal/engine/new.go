package engine

import (
	"context"
	"fmt"
	"math"
	"net"

	"github.com/redquake/redquake/internal/engine/callers"
	"github.com/redquake/redquake/internal/engine/dial"
	"github.com/redquake/redquake/internal/engine/gaps"
	"github.com/redquake/redquake/internal/engine/load"
	"github.com/redquake/redquake/internal/engine/locks"
	"github.com/redquake/redquake/internal/engine/observer"
	"github.com/redquake/redquake/internal/engine/pace"
	"github.com/redquake/redquake/internal/engine/probe"
	"github.com/redquake/redquake/internal/engine/route"
	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/redis/track"
)

// Option changes how a Runner works.
type Option func(*Runner)

// WithPassword sets the password instead of the password file of the plan: for a run from the
// command line.
func WithPassword(password string) Option {
	return func(r *Runner) { r.run.Routes.Dialer.Password = &password }
}

// WithoutRecording only counts how many requests ended, in the last interval, to measure the cost
// of recording. Every outcome counts as success.
func WithoutRecording() Option {
	return func(r *Runner) { r.run.NoRecording = true }
}

// WithDialer establishes every connection with dial, which receives addresses as in the plan, for
// transports without file descriptors. The loops then wait on channels and Go's timers instead of
// epoll: slower and less precise, but able to run in virtual time. Topology queries
// (Target.Topology) still use TCP, and drivers of libraries do not support TLS with it.
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return func(r *Runner) { r.run.Routes.Dialer.TCP, r.run.Portable = dial, true }
}

// WithLayout sends the load to the shards of a map that never changes, instead of asking the
// target's servers for it: for servers that know of no cluster.
func WithLayout(m *topology.Map) Option {
	return func(r *Runner) { r.run.Routes.Tracker, r.laidOut = track.Fixed(m), true }
}

// WithStops calls wait in every goroutine that sends, reads or records when it wakes up. Until wait
// returns the goroutine does not run, as if the process was stopped or had no CPU: for tests in
// virtual time, where that cannot happen. It needs WithDialer, whose connections have to do the
// same.
func WithStops(wait func()) Option {
	return func(r *Runner) { r.run.Stops = wait }
}

// New validates the plan and creates the runner of a pod, 0 <= pod < p.Pods. Errors are *plan.Error
// with PlanInvalid.
func New(p *plan.Plan, pod int, options ...Option) (*Runner, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if pod < 0 || pod >= p.Pods {
		return nil, &plan.Error{
			Reason:  plan.PlanInvalid,
			Message: fmt.Sprintf("spec.pods.count: there is no pod %d of %d", pod, p.Pods),
		}
	}
	n := &load.State{
		Work: pace.Work{
			Plan:   p,
			Pod:    pod,
			Length: int64(p.Shape.Length()),
			Turns:  p.Turns(),
			Users:  plan.NewSchedule(p.Shape),
		},
		Timeout: int64(p.Client.RequestTimeout),
		Routes: route.Routes{Dialer: &dial.Dialer{
			Target:   p.Target,
			Timeout:  p.Client.DialTimeout,
			Protocol: p.Client.Protocol,
			Hello:    &dial.Hello{},
			TCP:      dial.NewResolver().TCP,
			Hedges:   make(chan struct{}, p.Client.Connections+256),
		}},
	}
	r := &Runner{run: n, patience: dial.Budget(p.Client)}
	if err := r.chooseWorkload(); err != nil {
		return nil, err
	}
	if p.Shape.OpenLoop() {
		n.Pacer.Store(pace.NewPacer(p, pod))
	}
	r.layOut()
	n.Budget.Left.Store(math.MaxInt64)
	if p.Shape.Requests > 0 {
		n.Budget.Left.Store(n.Requests())
	}
	if pod < p.ProbePods() {
		first, err := probe.New(n, probe.WholeTarget, "")
		if err != nil {
			return nil, &plan.Error{
				Reason:  plan.PlanInvalid,
				Message: "spec.probe: " + err.Error(),
				Err:     err,
			}
		}
		r.probes = []*probe.Prober{first}
	}
	if p.Info > 0 && pod == 0 {
		r.observer = &observer.Observer{
			Clock:   &n.Clock,
			Routes:  &n.Routes,
			Timeout: p.Client.RequestTimeout,
			Every:   p.Info,
		}
	}
	for _, o := range options {
		o(r)
	}
	return r, nil
}

// chooseWorkload creates the workload, as far as that is possible before the deployment's topology
// is known.
func (r *Runner) chooseWorkload() error {
	n := r.run
	spec := &n.Plan.Workload
	wrong := func(err error) error {
		return &plan.Error{
			Reason:  plan.PlanInvalid,
			Message: "spec.workload." + err.Error(),
			Err:     err,
		}
	}
	if spec.IsRemote() {
		r.callers = &callers.Callers{State: n, Timeout: n.Plan.OperationTimeout()}
		w, err := workload.Described(spec)
		if err != nil {
			return wrong(err)
		}
		n.Workload = w
	} else {
		w, err := redisWorkload(n.Plan)
		if err != nil {
			return wrong(err)
		}
		n.Workload, n.Redis = w, w
		if n.Plan.Client.Driver.IsLibrary() {
			r.callers = &callers.Callers{State: n}
		}
	}
	n.Operations = operationsOf(n.Plan, n.Workload.Operations())
	n.Parts = gaps.PartsOf(n.Plan.ReadOnly())
	n.Thresholds = gaps.NewThresholds(n.Parts.Count, record.MaxShards, 2*gaps.UnknownPace)
	r.thresholds = gaps.NewFollower(int64(n.Plan.Interval), n.Parts, n.Thresholds)
	return nil
}

// redisWorkload is the workload of a plan whose requests are Redis commands.
func redisWorkload(p *plan.Plan) (workload.Redis, error) {
	if p.Workload.Lock != nil {
		return locks.New(&p.Workload, p.Client.Driver.IsLibrary())
	}
	return workload.New(&p.Workload)
}

// operationsOf returns the plan's operations, followed by the ledger's.
func operationsOf(p *plan.Plan, all []plan.Operation) []plan.Operation {
	if p.Verify == nil {
		return all
	}
	return append(all[:len(all):len(all)], plan.Operation{Name: LedgerOperation, Weight: 1})
}

package engine

import (
	"context"
	"fmt"
	"math"
	"net"

	"github.com/redquake/redquake/internal/engine/workload"
	"github.com/redquake/redquake/internal/plan"
)

// Option changes how a Runner works.
type Option func(*Runner)

// WithPassword gives the password itself, instead of the file in the plan: for a run from the command line.
func WithPassword(password string) Option {
	return func(r *Runner) { r.run.dialer.password = &password }
}

// WithoutRecording counts only how many requests ended, in the last interval: to measure what recording costs. Every outcome counts as ok.
func WithoutRecording() Option { return func(r *Runner) { r.run.noRecording = true } }

// WithDialer makes every connection of the run with dial, which gets addresses as the plan has them, for transports without file descriptors. The loops then wait on
// channels and Go's timers instead of epoll: slower, and less precise than a real load should be, but able to run in virtual time. A deployment that is followed
// (Target.Topology) is still asked over TCP, and the driver GoRedis does not do TLS over it.
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return func(r *Runner) { r.run.dialer.tcp, r.run.portable = dial, true }
}

// New checks the plan and lays out pod's share of it, 0 <= pod < p.Pods. Errors are *plan.Error with PlanInvalid.
func New(p *plan.Plan, pod int, options ...Option) (*Runner, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if pod < 0 || pod >= p.Pods {
		return nil, &plan.Error{Reason: plan.PlanInvalid, Message: fmt.Sprintf("spec.pods.count: there is no pod %d of %d", pod, p.Pods)}
	}
	n := &runState{
		plan: p, pod: pod, length: int64(p.Shape.Length()), timeout: int64(p.Client.RequestTimeout),
		users: plan.NewSchedule(p.Shape),
		gaps:  newGapLog(2 * unknownPace),
		dialer: &dialer{
			target: p.Target, timeout: p.Client.DialTimeout, protocol: p.Client.Protocol,
			tcp:    newResolver().tcp,
			hedges: make(chan struct{}, p.Client.Connections+256),
		},
	}
	n.scanEvery = min(max(n.timeout/20, scanShortest), scanLongest)
	r := &Runner{run: n, sampling: sampling{newSuccessPace(int64(p.Interval))}}
	if err := r.chooseWorkload(); err != nil {
		return nil, err
	}
	if p.Shape.OpenLoop() {
		n.pacer.Store(newPacer(p, pod))
	}
	r.layOut()
	n.budget.left.Store(math.MaxInt64)
	if p.Shape.Requests > 0 {
		n.budget.left.Store(int64(share(p.Shape.Requests, uint64(p.Pods), uint64(pod))))
	}
	if p.Probe.Rate > 0 {
		first, err := newProber(n, 0, "")
		if err != nil {
			return nil, &plan.Error{Reason: plan.PlanInvalid, Message: "spec.probe: " + err.Error(), Err: err}
		}
		r.probes = []*prober{first}
	}
	if p.Info > 0 && pod == 0 {
		r.observer = &observer{run: n, every: p.Info}
	}
	for _, o := range options {
		o(r)
	}
	return r, nil
}

// chooseWorkload makes the workload as far as it can be made before the deployment is known.
func (r *Runner) chooseWorkload() error {
	n := r.run
	spec := &n.plan.Workload
	wrong := func(err error) error {
		return &plan.Error{Reason: plan.PlanInvalid, Message: "spec.workload." + err.Error(), Err: err}
	}
	if spec.IsRemote() {
		r.callers = &callers{run: n, timeout: n.plan.Client.RequestTimeout}
		w, err := workload.Described(spec)
		if err != nil {
			return wrong(err)
		}
		n.workload = w
	} else {
		w, err := workload.New(spec)
		if err != nil {
			return wrong(err)
		}
		n.workload, n.redis = w, w
		if n.plan.Client.Driver == plan.GoRedisDriver {
			r.callers = &callers{run: n}
		}
	}
	n.operations = operationsOf(n.plan, n.workload.Operations())
	return nil
}

// operationsOf are the plan's operations, with the ledger's last.
func operationsOf(p *plan.Plan, all []plan.Operation) []plan.Operation {
	if p.Verify == nil {
		return all
	}
	return append(all[:len(all):len(all)], plan.Operation{Name: LedgerOperation, Weight: 1})
}

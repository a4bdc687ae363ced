package redisfault

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/redisfault/figures"
	"github.com/redquake/redquake/controllers/redisfault/scope"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/lifecycle"
)

// observe reads everything that the decision depends on.
func (r *Reconciler) observe(ctx context.Context, key client.ObjectKey) (*scope.Fault, error) {
	f := &v1alpha1.RedisFault{}
	if err := r.Client.Get(ctx, key, f); err != nil {
		return nil, fmt.Errorf("read the fault: %w", err)
	}
	if err := r.ending().EndGone(ctx, key, f.UID); err != nil {
		return nil, err
	}
	s := &scope.Fault{
		Fault:  f,
		Before: f.DeepCopy(),
		Now:    r.Clock.Now(),
	}
	if state.MayRun(f, f.Status.Conditions) {
		f.Status = v1alpha1.RedisFaultStatus{}
	}
	tried := s.FollowReverter(r.Term.Find(f.UID).ReverterOf(&f.Status))
	s.Seen = scope.SeenOf(f, tried, s.Now)
	s.Seen.LastCalled = r.Term.Find(f.UID).LastCalled()
	scope.ObserveRecords(s)
	if s.Seen.Finished && !s.Seen.Finalizer {
		r.Term.End(f.UID) // another operator may have released it
	}
	if s.Seen.Finished || s.Seen.Restored != "" {
		return s, nil
	}
	if err := r.ending().ObserveStop(ctx, s); err != nil {
		return nil, err
	}
	if err := r.load().Observe(ctx, s); err != nil {
		return nil, err
	}
	if err := r.observeTarget(ctx, s); err != nil {
		return nil, err
	}
	r.turns().ObservePolicy(ctx, s)
	if err := r.turns().ObserveTurn(ctx, s); err != nil {
		return nil, err
	}
	if err := r.observeClosing(ctx, s); err != nil {
		return nil, err
	}
	if err := r.load().ObserveQuiet(ctx, s); err != nil {
		return nil, err
	}
	r.load().ObserveTrigger(s)
	r.observeMark(s)
	r.observeStaleRecord(ctx, s)
	figures.ObserveImpact(s, r.Clock)
	r.observeRoles(ctx, s)
	return s, nil
}

// observeStaleRecord queries the targets of an old record without any recorded attempt: a process
// may have ended between an injection and the write of the status.
func (r *Reconciler) observeStaleRecord(ctx context.Context, s *scope.Fault) {
	s.Seen.Collected = s.Seen.Setting || s.Test != nil && s.Run != nil
	s.Seen.Taken = !s.Seen.Setting && r.Runs.Taken(s.Run, r.Clock.Now(), s.Fault.UID, s.Partners...)
	if !s.Seen.Recorded || s.Traits.External || s.Seen.Attempted || s.Seen.Reverting ||
		r.Clock.Since(s.Seen.RecordedAt) <= lifecycle.StaleRecord {
		return
	}
	_ = r.reach().Connect(ctx, s) // what is missing is an error of Begun
	for i := range s.Fault.Status.Targets {
		begun, err := s.Injector.Begun(ctx, &s.Fault.Status.Targets[i])
		s.Seen.Begun = s.Seen.Begun || begun || err != nil
	}
}

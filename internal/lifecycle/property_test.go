package lifecycle

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
)

// draws turns a fuzzer's two numbers into as many choices as an object has fields.
type draws struct{ *rand.Rand }

func (d draws) yes() bool { return d.IntN(2) == 0 }

// length is around the limits that the decisions compare with.
func (d draws) length() time.Duration {
	limits := []time.Duration{
		0, time.Nanosecond, time.Millisecond, time.Second, StartLead, PodSilence, ReferenceGrace,
		FaultsGrace, InjectPatience, StepsPatience, StaleRecord, RevertPatience, RevertLimit, BetweenCalls, endGrace,
		time.Hour,
	}
	return limits[d.IntN(len(limits))] + time.Duration(d.IntN(3)-1)
}

func (d draws) instant() time.Time {
	if d.IntN(4) == 0 {
		return time.Time{}
	}
	ahead, behind := d.length(), d.length()
	return epoch.Add(ahead - behind)
}

func (d draws) optional() *time.Duration {
	if d.yes() {
		return nil
	}
	return new(d.length())
}

func (d draws) problem() *problem.Problem {
	if d.yes() {
		return nil
	}
	return &problem.Problem{Reason: v1alpha1.ReasonNoTarget, Message: "none", Lasting: d.yes()}
}

func (d draws) text() string { return []string{"", "some words"}[d.IntN(2)] }

func (d draws) fault() Fault {
	o := Fault{
		Life: Life{
			Deleting:    d.yes(),
			Finalizer:   d.yes(),
			Finished:    d.IntN(4) == 0,
			CompletedAt: d.instant(),
			FirstSeen:   d.instant(),
			Stopped:     d.text(),
			Breach:      d.text(),
		},
		Asked: Asked{
			Suspend:  d.yes(),
			Abort:    d.yes(),
			TTL:      d.optional(),
			OwnLoad:  d.yes(),
			Deadline: d.instant(),
		},
		MeasuringLoad: MeasuringLoad{
			Load:        []LoadState{LoadMissing, LoadPending, LoadRunning, LoadEnded, LoadFailed}[d.IntN(5)],
			LoadName:    "cache",
			LoadMessage: d.text(),
			LoadStart:   d.instant(),
			WarmUntil:   d.instant(),
			Collected:   d.yes(),
		},
		Trigger: Trigger{
			After:        d.optional(),
			SteadyFor:    d.length(),
			SteadyWithin: d.length(),
			Steady:       d.yes(),
			SteadyWhy:    d.text(),
		},
		Obstacles: Obstacles{
			Problem:      d.problem(),
			Trouble:      d.problem(),
			TroubleSince: d.instant(),
			Taken:        d.yes(),
		},
		Injection: Injection{
			Recorded:     d.yes(),
			RecordedAt:   d.instant(),
			InjectedAny:  d.yes(),
			InjectedAll:  d.yes(),
			InjectedAt:   d.instant(),
			InjectionErr: d.text(),
			Attempted:    d.yes(),
			Begun:        d.yes(),
			LastCalled:   d.instant(),
			Progress:     d.text(),
		},
		Effect: Effect{
			ActiveAt:  d.instant(),
			Lasts:     d.length(),
			Confirmed: d.yes(),
		},
		Revert: Revert{
			RevertedAll:  d.yes(),
			RevertSince:  d.instant(),
			RevertTried:  d.yes(),
			Pending:      []Pending{{Pod: "redis-0", Attempts: d.IntN(2 * RevertAttempts)}},
			Reverting:    d.yes(),
			RevertFailed: d.text(),
		},
		Recovery: Recovery{
			Settled:       d.yes(),
			SettleWithin:  d.length(),
			SettledAt:     []time.Time{{}, epoch}[d.IntN(2)],
			LossesPending: d.yes(),
		},
	}
	o.DryRun = d.IntN(4) == 0
	o.External = d.IntN(4) == 0
	o.KnowsTarget = d.yes()
	o.AwaitedSince = d.instant()
	o.AwaitedFor = d.length()
	o.Marked = d.yes()
	o.MarkTrouble = d.text()
	o.Noted, o.Restored = d.yes(), []string{"", "", "", "a copy"}[d.IntN(4)]
	o.Setting = !o.External && !o.OwnLoad && d.IntN(3) == 0
	o.ClosingSince = d.instant()
	o.Unseen = d.yes()
	o.Later = d.text()
	if o.External { // it has targets from its mark on, and nothing to revert
		o.Recorded, o.RevertedAll, o.InjectedAny, o.InjectedAll, o.RevertFailed = !o.InjectedAt.IsZero(),
			!o.InjectedAt.IsZero(), false, false, ""
	}
	return o
}

func (d draws) loadTest() LoadTest {
	o := LoadTest{
		Suspend:     d.yes(),
		Abort:       d.yes(),
		Finished:    d.IntN(4) == 0,
		CompletedAt: d.instant(),
		TTL:         d.optional(),
		Suspended:   d.yes(),
		Noted:       d.yes(),
		Restored:    []string{"", "", "", "a copy"}[d.IntN(4)],
		Problem:     d.problem(),
		LoadPods: LoadPods{
			PendingSince: d.instant(),
			StartWithin:  d.length(),
			Children:     d.yes(),
			PodsWanted:   d.IntN(4),
			PodsExplain:  d.text(),
			AgentProblem: d.problem(),
			LostPolicy:   []v1alpha1.LostPodPolicy{v1alpha1.LostPodFail, v1alpha1.LostPodContinue, ""}[d.IntN(3)],
		},
		Course: Course{
			StartedAt:     d.instant(),
			StartReceived: d.yes(),
			StartedAny:    d.yes(),
			RampUp:        d.length(),
			WarmUp:        d.length(),
			Length:        d.length(),
			Extension:     d.length(),
		},
		Collection: Collection{
			Stopped:       d.yes(),
			RecordEnded:   d.yes(),
			RecordEndedAt: d.instant(),
		},
	}
	o.PodsReady, o.PodsLive = d.IntN(o.PodsWanted+1), d.IntN(o.PodsWanted+1)
	if d.yes() {
		o.PodsLost = []string{"index 0: OOMKilled"}
	}
	if d.yes() {
		o.FaultsUnsettled, o.FaultsUnfinished = []string{"kill"}, []string{"kill"}
	}
	return o
}

// FuzzDecide checks the invariants of the decisions for any observation. The seeds run with every `go test`.
func FuzzDecide(f *testing.F) {
	for seed := range uint64(2000) {
		f.Add(seed, seed*seed)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) {
		d := draws{rand.New(rand.NewPCG(a, b))}
		now := d.instant()
		checkFault(t, d.fault(), now)
		checkLoadTest(t, d.loadTest(), now)
	})
}

func checkFault(t *testing.T, o Fault, now time.Time) {
	t.Helper()
	got := NextForFault(o, now)
	must := func(ok bool, rule string) {
		t.Helper()
		if !ok {
			t.Errorf("%s: decided %s (%s) for %+v at %s", rule, got.Action, got.Reason, o, now)
		}
	}
	is := func(actions ...FaultAction) bool { return slices.Contains(actions, got.Action) }
	must(is(FaultWait, FaultAddFinalizer, FaultMakeLoad, FaultRehearse, FaultAwait, FaultLook, FaultMark, FaultRecord,
		FaultRenew, FaultInject, FaultPause, FaultHold, FaultClose, FaultObserve, FaultRevert, FaultAbandon, FaultSettle,
		FaultFinish, FaultFail, FaultRelease, FaultExpire), "an action that there is")
	if is(FaultInject, FaultRenew) {
		must(o.Finalizer && o.Recorded, "nothing is broken before finalizer and record")
		must(!o.Deleting && !o.Finished && !o.Abort && o.Stopped == "" && !o.Reverting,
			"nothing is broken by a fault that ends")
		must(!o.InjectedAll, "nothing is broken twice")
	}
	if is(FaultRecord, FaultMakeLoad, FaultAwait) {
		must(o.Noted && o.Restored == "", "nothing begins before it is noted, or as a copy of what had begun")
	}
	if is(FaultInject, FaultRenew, FaultRecord, FaultMakeLoad, FaultHold) {
		must(!o.DryRun || is(FaultHold), "a dry run records and injects nothing, and creates no load")
		must(!o.External || is(FaultMakeLoad), "nothing is injected where something else breaks Redis")
	}
	if is(FaultRehearse) {
		must(o.DryRun && !o.Recorded && !o.Suspend && !o.Abort && o.Stopped == "", "only a dry run is rehearsed")
	}
	if is(FaultAwait, FaultLook, FaultMark) {
		must(o.External && o.Finalizer && !o.DryRun && !o.Finished && o.InjectedAt.IsZero(),
			"only what something else breaks is waited for")
		must(is(FaultAwait) == o.AwaitedSince.IsZero(), "a wait begins once")
	}
	if is(FaultRenew) {
		must(!o.Attempted && !o.InjectedAny && !o.Begun && o.Collected, "only a record that nothing was done by is made anew")
	}
	if is(FaultPause) {
		must(now.Before(o.LastCalled.Add(BetweenCalls)), "a pause follows a call")
	}
	if is(FaultAbandon) {
		must(o.Reverting && !o.RevertedAll && o.RevertTried, "what is abandoned was tried")
	}
	if is(FaultHold) {
		must(o.InjectedAll && !o.RevertedAll && !o.Reverting && now.Before(o.ActiveAt.Add(o.Lasts)),
			"a fault stays that is complete and not reverted, for its time")
		must(!o.Deleting && !o.Abort && o.Stopped == "" && !overdue(o, now), "no fault stays that is ended")
	}
	if is(FaultClose) {
		must(o.Setting && o.InjectedAll && !o.RevertedAll && !o.Reverting && (o.Abort || loadGone(o)),
			"what closes is a setting in force whose load is over")
		must(!o.Deleting && !o.Finished && o.Stopped == "" && o.Breach == "" && !overdue(o, now) &&
			now.Before(o.ActiveAt.Add(o.Lasts)), "no setting closes that is to end at once")
		must(o.ClosingSince.IsZero() || now.Before(o.ClosingSince.Add(StepsPatience)), "no setting closes for ever")
	}
	if o.Setting {
		must(!is(FaultMakeLoad, FaultAwait, FaultLook, FaultMark, FaultObserve, FaultSettle),
			"nothing is measured against a setting")
		must(!is(FaultRevert) || o.Reverting || !(o.Abort || loadGone(o)) || !o.ClosingSince.IsZero() || !o.InjectedAll ||
			o.Deleting || o.DryRun || o.Stopped != "" || o.Breach != "" || overdue(o, now) ||
			!now.Before(o.ActiveAt.Add(o.Lasts)),
			"a setting whose load is over is not reverted before that is stored")
	}
	if is(FaultFinish) && o.Recorded {
		must(o.RevertFailed == "" || !o.RevertedAll, "what could not be reverted is no success")
	}
	if is(FaultSettle) {
		must(o.SettledAt.IsZero() && (o.InjectedAll || o.External) && o.RevertedAll,
			"a fault settles once, when everything is reverted")
	}
	if is(FaultRecord) {
		must(o.Finalizer && !o.Recorded && !o.Suspend && !o.Taken &&
			(o.Load == LoadRunning || o.Setting && o.KnowsTarget && !loadGone(o)),
			"targets are chosen once, under full load, unless held or another fault is ahead")
	}
	if o.Finished {
		must(is(FaultWait, FaultRelease, FaultExpire, FaultRevert, FaultPause, FaultAbandon),
			"a finished fault stays finished")
	}
	if o.Deleting {
		must(is(FaultWait, FaultRelease, FaultRevert, FaultPause, FaultAbandon), "a deleted fault only leaves")
	}
	if o.Recorded && !o.RevertedAll && o.Finalizer && !o.Finished {
		must(!is(FaultFinish, FaultFail, FaultRelease, FaultExpire), "a fault does not end before it is reverted")
	}
	if is(FaultExpire) {
		must(o.Finished && o.TTL != nil && !now.Before(o.CompletedAt.Add(*o.TTL)),
			"expiry is for a finished fault whose TTL is over")
	}
	if is(FaultMakeLoad) {
		must(o.OwnLoad && o.Load == LoadMissing, "a probe load is made where there is none")
	}
	if !o.Finished && !o.Deleting &&
		is(FaultWait, FaultHold, FaultClose, FaultObserve, FaultRecord, FaultRenew, FaultInject, FaultPause, FaultRevert,
			FaultAbandon) && !(got.Reason == v1alpha1.ReasonSuspended && o.Deadline.IsZero()) {
		must(!got.Until.IsZero() && got.Until.After(now), "who waits knows when to look again")
	}
	if !o.Finished && !o.Deleting && !is(FaultRelease, FaultExpire) {
		must(got.Reason != "", "a condition needs a reason")
	}
}

func checkLoadTest(t *testing.T, o LoadTest, now time.Time) {
	t.Helper()
	got := NextForLoadTest(o, now)
	must := func(ok bool, rule string) {
		t.Helper()
		if !ok {
			t.Errorf("%s: decided %s (%s) for %+v at %s", rule, got.Action, got.Reason, o, now)
		}
	}
	is := func(actions ...LoadTestAction) bool { return slices.Contains(actions, got.Action) }
	must(is(LoadTestWait, LoadTestNote, LoadTestPrepare, LoadTestStart, LoadTestResend, LoadTestStop, LoadTestFinish,
		LoadTestFail, LoadTestSuspend, LoadTestExpire), "an action that there is")
	if o.Finished {
		must(is(LoadTestWait, LoadTestExpire), "a finished test stays finished")
	} else {
		must(got.Reason != "", "a condition needs a reason")
	}
	if is(LoadTestPrepare) || is(LoadTestStart) && o.StartedAt.IsZero() {
		must(o.Noted && o.Restored == "", "nothing begins before it is noted, or as a copy of what had begun")
	}
	if is(LoadTestStart) && o.StartedAt.IsZero() {
		must(o.Children && o.PodsReady == o.PodsWanted, "no start before all pods are ready")
	}
	if is(LoadTestStart) {
		must(!o.Suspend && (!o.Abort || o.Stopped) && (o.StartedAt.IsZero() || !o.StartedAny),
			"no start of a test that is held, aborted or under way")
	}
	if is(LoadTestResend, LoadTestStop) {
		must(!o.StartedAt.IsZero(), "who talks to running pods has started them")
	}
	if is(LoadTestExpire) {
		must(o.Finished && o.TTL != nil && !now.Before(o.CompletedAt.Add(*o.TTL)),
			"expiry is for a finished test whose TTL is over")
	}
	if is(LoadTestSuspend) {
		must(o.Suspend && !o.Suspended, "only a test that is to be held forgets its run")
	}
	if is(LoadTestFinish) && got.Reason == v1alpha1.ReasonSucceeded {
		must(o.RecordEnded && !o.Abort, "success needs the whole record")
	}
	if is(LoadTestWait) && !o.Finished && !o.Suspend {
		must(!got.Until.IsZero(), "who waits knows when to look again")
	}
}

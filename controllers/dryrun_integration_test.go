//go:build integration

package controllers

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
)

// rehearsals are the stages of all kinds. A dry run changes nothing, so that many kinds share a stage, and are planned
// at the same time.
var rehearsals = []overlapping{
	{
		name:  "server",
		scene: single(injections, "--enable-debug-command", "yes"),
		kinds: kindsThatNeed(needsServer, needsLoad),
	},
	{name: "configuration file", scene: rewritten, kinds: kindsThatNeed(needsFile)},
	{name: "nodes", scene: fleetOf(1, onVolume), kinds: kindsThatNeed(needsNodes)},
	{name: "replication", scene: fleetOf(3, nil), kinds: kindsThatNeed(needsWorkload, needsScaling, needsReplication)},
	{name: "sentinel", scene: patientlyWatched, kinds: kindsThatNeed(needsSentinels)},
	{name: "cluster", scene: clusterFleet, shard: new(int32(0)), kinds: kindsThatNeed(needsCluster)},
	{name: "chaosmesh", on: newMeshPlace, scene: meshed(injections), kinds: kindsThatNeed(needsMesh)},
}

// injections counts what faults have done to a single server.
func injections(s *redisSet) int {
	return podsDeleted(s) + serversEnded(s) + executed("bgsave")(s) + executed("client|kill")(s) +
		executed("client|pause")(s) + slowly("debug")(s) + slowly("eval_ro")(s)
}

// A dry run of every kind leaves real servers and the cluster as they were, and has planned the fault.
func TestDryRunOfEveryKind(t *testing.T) {
	t.Parallel()
	for _, kind := range crashKinds {
		if !slices.ContainsFunc(rehearsals, func(r overlapping) bool { return isAmong(r.kinds, kind) }) {
			t.Errorf("rehearsals has no stage with %s", kind.name)
		}
	}
	for _, r := range rehearsals {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.rehearse(crashKind{on: r.on, scene: r.scene}.raise(t))
		})
	}
}

// rehearse creates a dry run of each kind, and looks for what they have changed when all are over.
func (o overlapping) rehearse(s *crashStage) {
	s.t.Helper()
	before := 0
	if s.broken != nil {
		before = s.broken()
	}
	name := func(i int) string { return fmt.Sprintf("plan-%d", i) }
	for i, kind := range o.kinds {
		s.create(newFault(name(i), "run", kind.fault, func(f *v1alpha1.RedisFault) {
			f.Spec.DryRun, f.Spec.Trigger.After = true, length(time.Hour) // it does not wait for that
			f.Spec.Select.Shard = o.shard
			kind.spec(s.place, &f.Spec)
		}))
	}
	for i, kind := range o.kinds {
		f := s.faultEnds(name(i), time.Minute)
		if reason(f.Status.Conditions) != v1alpha1.ReasonDryRun || f.Status.Plan == nil ||
			len(f.Status.Plan.Steps) != len(f.Status.Targets) || len(f.Status.Targets) == 0 {
			s.t.Errorf("%s: %s; plan %+v", kind.name, where(f.Status.Conditions), f.Status.Plan)
			continue
		}
		s.t.Logf("%s: %+v", kind.name, f.Status.Plan.Steps)
		if left := s.orphansOf(f); len(left) > 0 {
			s.t.Errorf("%s has left %v", kind.name, left)
		}
	}
	await.Until(s.t, "everything is as before the dry runs", func() error { // a server may answer late
		lines := differences(s.before, s.shows())
		return await.That(len(lines) == 0, "%q", lines)
	})
	if s.broken != nil && s.broken() != before {
		s.t.Errorf("%d injections, %d before", s.broken(), before)
	}
}

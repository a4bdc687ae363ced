//go:build integration

package overlap

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/meshplace"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/stage"
)

// rehearsals are the stages of all kinds. A dry run changes nothing, so that many kinds share a stage, and are planned
// at the same time.
var rehearsals = []overlapping{
	{
		name:  "server",
		scene: stage.Single(injections, "--enable-debug-command", "yes"),
		kinds: stage.KindsThatNeed(stage.NeedsServer, stage.NeedsLoad),
	},
	{name: "configuration file", scene: stage.Rewritten, kinds: stage.KindsThatNeed(stage.NeedsFile)},
	{name: "nodes", scene: stage.FleetOf(1, stage.OnClaims), kinds: stage.KindsThatNeed(stage.NeedsNodes)},
	{name: "power", scene: stage.FleetOf(1, stage.Powered), kinds: stage.KindsThatNeed(stage.NeedsPower)},
	{name: "operator", scene: stage.FleetOf(1, stage.Operated), kinds: stage.KindsThatNeed(stage.NeedsOperator)},
	{
		name:  "replication",
		scene: stage.FleetOf(3, nil),
		kinds: stage.KindsThatNeed(stage.NeedsWorkload, stage.NeedsScaling, stage.NeedsReplication),
	},
	{name: "sentinel", scene: stage.PatientlyWatched, kinds: stage.KindsThatNeed(stage.NeedsSentinels)},
	{name: "cluster", scene: stage.ClusterFleet, shard: new(int32(0)), kinds: stage.KindsThatNeed(stage.NeedsCluster)},
	{
		name:  "network",
		on:    stage.NewNetworkPlace,
		scene: withKubelet(stage.Single(injections)),
		kinds: stage.KindsThatNeed(stage.NeedsNetwork),
	},
	{name: "disk", on: stage.NewNetworkPlace, scene: stage.OnDisk, kinds: stage.KindsThatNeed(stage.NeedsDisk)},
	{
		name:  "chaosmesh",
		on:    meshplace.New,
		scene: stage.Meshed(injections),
		kinds: stage.KindsThatNeed(stage.NeedsMesh),
	},
}

// injections counts what faults have done to a single server.
func injections(s *operatortest.RedisSet) int {
	return stage.PodsDeleted(s) + stage.ServersEnded(s) + stage.Executed("bgsave")(s) + stage.Executed("client|kill")(s) +
		stage.Executed("client|pause")(s) + stage.Slowly("debug")(s) + stage.Slowly("eval_ro")(s)
}

// A dry run of every kind leaves real servers and the cluster as they were, and has planned the fault.
func TestDryRunOfEveryKind(t *testing.T) {
	t.Parallel()
	for _, kind := range stage.Kinds {
		if !slices.ContainsFunc(rehearsals, func(r overlapping) bool { return isAmong(r.kinds, kind) }) {
			t.Errorf("rehearsals has no stage with %s", kind.Name)
		}
	}
	for _, r := range rehearsals {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.rehearse(stage.Kind{On: r.on, Scene: r.scene}.Raise(t))
		})
	}
}

// rehearse creates a dry run of each kind, and looks for what they have changed when all are over.
func (o overlapping) rehearse(s *stage.Stage) {
	s.T.Helper()
	before := 0
	if s.Broken != nil {
		before = s.Broken()
	}
	name := func(i int) string { return fmt.Sprintf("plan-%d", i) }
	for i, kind := range o.kinds {
		s.Create(operatortest.NewFault(name(i), "run", kind.Fault, func(f *v1alpha1.RedisFault) {
			f.Spec.DryRun, f.Spec.Trigger.After = true, operatortest.Length(time.Hour) // it does not wait for that
			f.Spec.Select.Shard = o.shard
			kind.Spec(s.Place, &f.Spec)
		}))
	}
	for i, kind := range o.kinds {
		f := s.FaultEnds(name(i), time.Minute)
		if operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonDryRun || f.Status.Plan == nil ||
			len(f.Status.Plan.Steps) != len(f.Status.Targets) || len(f.Status.Targets) == 0 {
			s.T.Errorf("%s: %s; plan %+v", kind.Name, operatortest.Where(f.Status.Conditions), f.Status.Plan)
			continue
		}
		s.T.Logf("%s: %+v", kind.Name, f.Status.Plan.Steps)
		if left := stage.OrphansOf(s.Place, f); len(left) > 0 {
			s.T.Errorf("%s has left %v", kind.Name, left)
		}
	}
	await.Until(s.T, "everything is as before the dry runs", func() error { // a server may answer late
		lines := stage.Differences(s.Before, s.Shows())
		return await.That(len(lines) == 0, "%q", lines)
	})
	if s.Broken != nil && s.Broken() != before {
		s.T.Errorf("%d injections, %d before", s.Broken(), before)
	}
}

//go:build integration

package guard

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/faulttest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// A primary that would come back without its data is not ended while others replicate from it: they would copy the
// empty data set.
func TestEmptyPrimary(t *testing.T) { redistest.Each(t, testEmptyPrimary) }

func testEmptyPrimary(t *testing.T) {
	t.Parallel()
	claim := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}
	scratch := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	kill := contract.Traits{Silences: true, EndsServer: true, NewPod: true}
	killed := kill
	crash := contract.Traits{Silences: true, EndsServer: true, Abrupt: true}
	roll := contract.Traits{RollsPods: true}
	killed.Abrupt = true
	primary := redistest.NewServer(t, redistest.Options{})
	replica := redistest.NewServer(t, redistest.Options{})
	primary.Do("set", "precious", "42")
	replica.Do("replicaof", "127.0.0.1", primary.Port)
	for _, tc := range []struct {
		name      string
		settings  string // of the primary
		saves     bool   // it has saved a snapshot
		volume    corev1.VolumeSource
		elsewhere bool // the volume is not where the data is
		traits    contract.Traits
		why       string // "" = it keeps its data
	}{
		{
			name:   "nothing on disk, killed",
			volume: claim,
			traits: kill,
			why:    `it writes nothing to its disk (appendonly no, save "")`,
		},
		{name: "nothing on disk, crashed", volume: claim, traits: crash, why: "it writes nothing to its disk"},
		{name: "nothing on disk, rolled", volume: claim, traits: roll, why: "it writes nothing to its disk"},
		{name: "nothing on disk, paused", volume: claim, traits: contract.Traits{Silences: true}},
		{name: "snapshots to come, ended in order", settings: "save 3600 1", volume: claim, traits: kill},
		{
			name:     "snapshots to come, crashed",
			settings: "save 3600 1",
			volume:   claim,
			traits:   crash,
			why:      "it has not saved a snapshot yet",
		},
		{
			name:     "snapshots to come, killed at once",
			settings: "save 3600 1",
			volume:   claim,
			traits:   killed,
			why:      "it has not saved a snapshot yet",
		},
		{name: "a snapshot, crashed", settings: "save 3600 1", saves: true, volume: claim, traits: crash},
		{
			name:     "a snapshot in the pod, killed",
			settings: "save 3600 1",
			saves:    true,
			volume:   scratch,
			traits:   kill,
			why:      "is on no volume that outlives its pod",
		},
		{name: "an append-only file, killed", settings: "appendonly yes", volume: claim, traits: killed},
		{
			name:     "an append-only file in the pod, killed",
			settings: "appendonly yes",
			volume:   scratch,
			traits:   kill,
			why:      "is on no volume that outlives its pod",
		},
		{
			name:     "an append-only file in the pod, rolled",
			settings: "appendonly yes",
			volume:   scratch,
			traits:   roll,
			why:      "is on no volume that outlives its pod",
		},
		{name: "an append-only file in the pod, crashed", settings: "appendonly yes", volume: scratch, traits: crash},
		{
			name:      "an append-only file beside the volume, crashed",
			settings:  "appendonly yes",
			volume:    claim,
			elsewhere: true,
			traits:    crash,
			why:       "is on no volume that outlives its container",
		},
	} {
		{
			primary.Do("config", "set", "save", "")
			primary.Do("config", "set", "appendonly", "no")
			if name, value, set := strings.Cut(tc.settings, " "); set {
				primary.Do("config", "set", name, value)
			}
		}
		if tc.saves {
			await.Until(t, "no snapshot is being made for the replica", func() error {
				if n := primary.Info("rdb_bgsave_in_progress"); n != "0" {
					return fmt.Errorf("rdb_bgsave_in_progress is %s", n)
				}
				return nil
			})
			primary.Do("save")
		}
		stage := func(servers ...*redistest.Server) *faulttest.Stage {
			s := faulttest.NewStage(t, nil, Choose)
			for i, server := range servers {
				s.Host([]string{"redis-0", "redis-1"}[i], server, func(p *corev1.Pod) {
					at := primary.Dir
					if tc.elsewhere {
						at = "/somewhere/else"
					}
					p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: tc.volume}}
					p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: at}}
				})
			}
			return s
		}
		spec := &v1alpha1.RedisFaultSpec{
			Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill},
			Select: v1alpha1.FaultSelector{Names: []string{"redis-0"}},
		}
		pair := stage(primary, replica)
		allowedAtLast(t, hosting(pair), spec) // the replica is in sync
		_, err := Choose(t.Context(), hosting(pair), spec, tc.traits)
		switch {
		case tc.why == "" && err != nil:
			t.Errorf("%s: %v", tc.name, err)
		case tc.why != "":
			if p := faulttest.ProblemOf(t, err); p.Reason != v1alpha1.ReasonBlastRadius ||
				!strings.Contains(p.Message, "redis-0, the primary of 1 other copies, which comes back without data, as ") ||
				!strings.Contains(p.Message, tc.why) || !strings.Contains(p.Message, "[DataLoss]") {
				t.Errorf("%s: %+v", tc.name, p)
			}
		}
		allowed := spec.DeepCopy()
		allowed.Allow = []v1alpha1.Allowance{v1alpha1.AllowDataLoss}
		found, err := Choose(t.Context(), hosting(pair), allowed, tc.traits)
		if err != nil || !strings.Contains(found[0].LosesData, tc.why) || (found[0].LosesData == "") != (tc.why == "") {
			t.Errorf("%s, allowed: %+v, %v", tc.name, found, err)
		}
	}
	replica.Do("replicaof", "no", "one")
	primary.Do("config", "set", "appendonly", "no")
	alone := faulttest.NewStage(t, nil, Choose)
	alone.Host("redis-0", replica, nil)
	found, err := Choose(t.Context(), hosting(alone), &v1alpha1.RedisFaultSpec{}, kill)
	if err != nil || !strings.Contains(found[0].LosesData, "it writes nothing to its disk") {
		t.Errorf("a cache alone: %+v, %v", found, err)
	}
}

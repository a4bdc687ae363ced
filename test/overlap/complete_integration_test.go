//go:build integration

package overlap

import (
	"slices"
	"testing"

	"github.com/redquake/redquake/internal/testing/stage"
)

// apart are pairs of kinds that cannot act on the same Redis, or that meet as other kinds do.
var apart = []struct {
	these, those []stage.Kind
	why          string
}{
	{
		ofSettings, stage.Kinds,
		"a setting: faults on its load act beside it, others wait until that has ended: TestSettingsOfALoadOnRedis",
	},
	{
		ofCluster, slices.Concat(ofScaling, ofReplication, ofSentinels),
		"a server is in a cluster or not; in one, other variants of these types meet the rest",
	},
	{
		ofReplication, ofSentinels,
		"without sentinels, a Failover is refused where sentinels watch: TestFailoverBySentinelIsRefused",
	},
	{
		ofPower, slices.Concat(ofFile, ofScaling, ofReplication, ofSentinels, ofCluster, ofNetwork, ofDisk, ofMesh),
		"acts on a node, not on the Redis there: NodeLoss with Taint meets these",
	},
	{
		ofDisk, slices.Concat(ofFile, ofScaling, ofReplication, ofSentinels, ofCluster, ofMesh),
		"a pod beside a server with a volume, which changes neither the server nor its workload: with what acts on one server it " +
			"meets the rest",
	},
	{
		ofFile, slices.Concat(ofScaling, ofReplication, ofSentinels, ofCluster, ofMesh, ofNetwork),
		"Config on a server whose file is rewritten, which stands alone; as Config it meets these",
	},
}

// TestEveryPairOfKindsMeets derives all pairs from the kinds of the crash test: each meets on a stage of TestOverlap,
// or is apart for a reason.
func TestEveryPairOfKindsMeets(t *testing.T) {
	for i, a := range stage.Kinds {
		for _, b := range stage.Kinds[i:] {
			meet, cannot := false, ""
			for _, o := range overlaps {
				for part := range max(1, o.splits) {
					meet = meet || slices.ContainsFunc(o.pairs(part, false), func(p pair) bool { return p.of(a, b) })
				}
			}
			for _, pairs := range apart {
				if isAmong(pairs.these, a) && isAmong(pairs.those, b) || isAmong(pairs.these, b) && isAmong(pairs.those, a) {
					cannot = pairs.why
				}
			}
			switch {
			case !meet && cannot == "":
				t.Errorf("%s and %s meet on no stage", a.Name, b.Name)
			case meet && cannot != "":
				t.Errorf("%s and %s meet on a stage, but cannot: %s", a.Name, b.Name, cannot)
			}
		}
	}
}

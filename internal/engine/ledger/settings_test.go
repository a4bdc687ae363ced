package ledger

import (
	"testing"

	"github.com/redquake/redquake/internal/testing/truth"
)

// One primary of three has its own settings: those of the others are not those of the deployment.
func TestTruthSettingsOfEveryPrimary(t *testing.T) {
	var same, other settingsOfPrimaries
	for _, address := range []string{"a:1", "b:1", "c:1"} {
		same.add(address, "appendonly yes")
		if address == "b:1" {
			other.add(address, "appendonly no")
			continue
		}
		other.add(address, "appendonly yes")
	}
	truth.Report(t, "T23", "settings of three primaries that are equal", "appendonly yes", same.String(),
		same.String() == "appendonly yes")
	const want = "a:1 and c:1: appendonly yes; b:1: appendonly no"
	truth.Report(t, "T23", "settings of three primaries, one without persistence", want, other.String(),
		other.String() == want)
	if none := settingsOfPrimaries(nil).String(); none != "" {
		t.Errorf("without a primary %q", none)
	}
}

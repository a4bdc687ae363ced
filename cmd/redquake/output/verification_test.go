package output

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/result"
)

// The number of lost writes is there exactly if it is known, and nothing is lost on the way.
func TestVerification(t *testing.T) {
	for name, ledger := range map[string]*record.Ledger{
		"nothing lost": {Acked: 1484, Unknown: 2, UnknownPresent: 1, Replicas: 2, Settings: "appendonly yes"},
		"lost": {
			Acked: 524320, Lost: 276128, FirstLost: int64(707400 * time.Microsecond),
			LastLost: int64(1677500 * time.Microsecond), Errors: 7, Replicas: 2, ReplicaMissing: 3,
		},
		"evicted": {
			Acked:     1000,
			Lost:      100,
			Unique:    true,
			Evictions: map[string]record.Evictions{"a": {Keys: 30, Final: true}},
		},
		"unread": {Acked: 10, Lost: 10, Unread: "no primary"},
		"beside it": {
			Acked: 1,
			Stale: &record.Staleness{Reads: 100, Stale: 3, MaxWrites: 2, MaxBehind: int64(4 * time.Millisecond)},
			Dual:  &record.DualPrimary{Writes: 5, First: 1e9, Last: 2e9},
		},
		"no write": {Failed: 3},
		"of a library": {
			Acked: 600, Failed: 4, Unknown: 9, UnknownPresent: 5, FailedPresent: 1, ExecutedTwice: new(uint64(50)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			run := quiet()
			run.Verified(ledger)
			var object bytes.Buffer
			if err := WriteJSON(&object, run); err != nil {
				t.Fatal(err)
			}
			var back result.Load
			if err := json.Unmarshal(object.Bytes(), &back); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(run, &back); diff != "" {
				t.Errorf("JSON loses something (-written +read):\n%s", diff)
			}
			if v := run.Verification; (v.FailedButExecuted != nil) != (ledger.ExecutedTwice != nil) {
				t.Errorf("executions must be counted exactly for a library: %+v", v)
			}
			if strings.Contains(object.String(), "lostWrites") != (ledger.Unread == "" && ledger.Acked > 0) {
				t.Errorf("lostWrites must be present exactly if the number is known:\n%s", object.String())
			}
		})
	}
}

func TestNoVerification(t *testing.T) {
	run := quiet()
	run.Verified(nil)
	if run.Verification != nil {
		t.Errorf("a run without a ledger has a verification: %+v", run.Verification)
	}
}

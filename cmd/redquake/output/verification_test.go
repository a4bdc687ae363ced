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

func TestVerification(t *testing.T) {
	for name, c := range map[string]struct {
		ledger *record.Ledger
		want   []string // lines
	}{
		"nothing lost": {
			&record.Ledger{Acked: 1484, Unknown: 2, UnknownPresent: 1, Replicas: 2, Settings: "appendonly yes"},
			[]string{"Lost writes none of 1484 acknowledged ledger writes (2 unknown, 1 of them present; read at every primary and 2 replicas; appendonly yes)"},
		},
		"lost quietly": {
			&record.Ledger{Acked: 524320, Lost: 276128, FirstLost: int64(707400 * time.Microsecond), LastLost: int64(1677500 * time.Microsecond), Replicas: 2, ReplicaMissing: 3},
			[]string{"Lost writes 276128 of 524320 acknowledged ledger writes, at least, acknowledged from 707ms to 1.68s; no client saw an error then " +
				"(0 unknown, 0 of them present; read at every primary and 2 replicas, one of which lacks 3)"},
		},
		"lost with errors": {
			&record.Ledger{Acked: 10, Lost: 1, LastLost: int64(time.Second), Errors: 7},
			[]string{"about 7 requests failed then"},
		},
		"evicted": {
			&record.Ledger{Acked: 1000, Lost: 100, Unique: true, Evictions: map[string]record.Evictions{"a": {Keys: 30, Final: true}}},
			[]string{"Lost writes between 70 and 100 of 1000 acknowledged ledger writes, as others may have been evicted, acknowledged from", "100 acknowledged writes are absent, and Redis may have evicted some of them"},
		},
		"unread": {&record.Ledger{Acked: 10, Lost: 10, Unread: "no primary"}, []string{"Lost writes not known: no primary"}},
		"beside it": {
			&record.Ledger{Acked: 1, Stale: &record.Staleness{Reads: 100, Stale: 3, MaxWrites: 2, MaxBehind: int64(4 * time.Millisecond), NonMonotonic: 1, RolledBack: 1}, Dual: &record.DualPrimary{Writes: 5, First: 1e9, Last: 2e9}},
			[]string{
				"Stale reads 3 of 100 replies of replicas, at most 2 writes and 4ms behind; 2 went backwards",
				"Primaries   two at the same time: 5 writes accepted by a second one, from 1s to 2s",
			},
		},
		"nothing written": {&record.Ledger{Failed: 3}, []string{"Lost writes not known: no ledger write was acknowledged"}},
		"never two":       {&record.Ledger{Acked: 1, Dual: &record.DualPrimary{}}, []string{"Primaries   never two at the same time"}},
	} {
		t.Run(name, func(t *testing.T) {
			run := quiet()
			run.Verified(c.ledger)
			var text, object bytes.Buffer
			if err := WriteText(&text, run); err != nil {
				t.Fatal(err)
			}
			for _, want := range c.want {
				if !strings.Contains(text.String(), want) {
					t.Errorf("%q is not in\n%s", want, text.String())
				}
			}
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
			if strings.Contains(object.String(), "lostWrites") != (c.ledger.Unread == "" && c.ledger.Acked > 0) {
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

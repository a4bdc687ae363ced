package oracle

import "testing"

// TestKeptHistories: figures of which the analysis once said something false without a doubt are true now, or doubted.
func TestKeptHistories(t *testing.T) {
	for _, kept := range []map[string]History{keptWaits, keptOutages} {
		for name, h := range kept {
			t.Run(name, func(t *testing.T) {
				for _, f := range check(t, &h).False() {
					t.Errorf("%s\n%s", f, &h)
				}
			})
		}
	}
}

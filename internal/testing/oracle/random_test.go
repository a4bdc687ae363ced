package oracle

import "testing"

// TestRandomHistories: what the analysis says of 300 histories is true, or doubted. `make oracle` has more.
func TestRandomHistories(t *testing.T) {
	t.Parallel()
	Run(t, 1, 300).Judge(t)
}

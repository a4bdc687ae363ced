//go:build oracle

package oracle

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// TestOracle is `make oracle`.
func TestOracle(t *testing.T) {
	histories, err := strconv.Atoi(os.Getenv("HISTORIES"))
	if err != nil {
		t.Fatalf("HISTORIES: %v", err)
	}
	seed := rand.Uint64N(1_000_000)
	if given := os.Getenv("ORACLE_SEED"); given != "" {
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatalf("ORACLE_SEED: %v", err)
		}
	}
	t.Logf("%d histories; ORACLE_SEED=%d repeats them", histories, seed)
	s := Run(t, seed, histories)
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", text)
	if err := os.WriteFile(os.Getenv("REDQUAKE_ORACLE_OUT"), append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	s.Judge(t)
}

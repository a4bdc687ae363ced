package document

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/result"
)

// A result that is too long for its place lists the first servers and shards, and says so; a short one is as it was.
func TestShortResult(t *testing.T) {
	const limit = 96 << 10
	l := &result.Load{
		Version: result.LoadVersion,
		Latency: result.ServiceTime,
		Total:   result.Operation{Name: "all", Requests: 3},
		Notes:   []string{"a note"},
	}
	for _, n := range []int{3, 2000} {
		l.Servers, l.Shards, l.Target.Servers = make([]result.ServerUse, n), make([]result.Shard, n), make([]result.Server, n)
		text, err := EncodeShortLoad(l, limit)
		if err != nil || len(text) > limit {
			t.Fatalf("%d servers: %d bytes, %v", n, len(text), err)
		}
		short, err := DecodeLoad(text)
		if err != nil {
			t.Fatal(err)
		}
		want := min(n, maxListed)
		if len(short.Servers) != want || len(short.Shards) != want || len(short.Target.Servers) != want ||
			short.Total != l.Total || len(l.Servers) != n {
			t.Errorf("%d servers, %d shards of %d, total %+v", len(short.Servers), len(short.Shards), n, short.Total)
		}
		notes := []string{"a note"}
		if n > maxListed {
			notes = append(notes, "the result lists the first 64 of 2000 servers, and of 2000 shards")
		}
		if diff := cmp.Diff(notes, short.Notes); diff != "" || len(l.Notes) != 1 {
			t.Error(diff)
		}
	}
	if _, err := EncodeShortLoad(&result.Load{Message: strings.Repeat("x", limit)}, limit); err == nil {
		t.Error("a result that does not fit is returned")
	}
}

func TestDecodeLoadRefuses(t *testing.T) {
	for _, text := range []string{"", "kind: ConfigMap", `{"kind":"ConfigMap"}`, `{"latencyFrom":`} {
		if _, err := DecodeLoad([]byte(text)); !errors.Is(err, ErrNoLoad) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := DecodeLoad([]byte(`{"version":9,"latencyFrom":"send"}`)); err == nil || errors.Is(err, ErrNoLoad) {
		t.Errorf("another version: %v", err)
	}
}

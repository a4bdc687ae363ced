package measured

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/result"
)

// The report says how many reads found nothing, and how many requests were redirected; nothing where there were none.
func TestAnswerFacts(t *testing.T) {
	l := &result.Load{
		Total:      result.Operation{Name: "all", Requests: 300, OK: 300, Misses: 91, Redirected: 7},
		Operations: []result.Operation{{Name: "set", OK: 200}, {Name: "get", OK: 100, Misses: 91}},
	}
	want := []report.Fact{
		{Name: "Hits", Value: "9\u00a0%", Detail: "get: 91 of 100 reads were answered by null, as of keys that do not exist"},
		{
			Name:   "Redirected",
			Value:  "7",
			Detail: "times a node answered MOVED or ASK, and the request was sent again to another one",
		},
	}
	if diff := cmp.Diff(want, Operations(l, false).Facts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	l.Total.Misses, l.Total.Redirected, l.Operations[1].Misses = 0, 0, 0
	if facts := Operations(l, false).Facts; len(facts) > 0 {
		t.Errorf("%+v", facts)
	}
}

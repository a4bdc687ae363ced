package record

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// A server is unobserved until there is a reading of it; the last error is why.
func TestUnobserved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		learned []Unobserved
		read    []Server
		want    []Unobserved
	}{
		"never read":                 {[]Unobserved{{"b:1", "refused"}, {"a:1", "refused"}, {"b:1", "NOPERM"}}, nil, []Unobserved{{"a:1", "refused"}, {"b:1", "NOPERM"}}},
		"read after all":             {[]Unobserved{{"", "refused"}, {"", ""}}, []Server{{Address: "a:1"}}, nil},
		"read before it failed":      {[]Unobserved{{"a:1", "refused"}, {"b:1", "refused"}}, []Server{{Address: "a:1"}}, []Unobserved{{"b:1", "refused"}}},
		"read, and never failed":     {[]Unobserved{{"a:1", ""}}, []Server{{Address: "a:1"}}, nil},
		"nothing is known of it yet": {nil, nil, nil},
	} {
		s := newTestSeries(1)
		iv := newInterval(0, len(s.Ops))
		iv.Pods, iv.Unobserved, iv.Servers = 1, c.learned, c.read
		if err := s.Add(0, &iv); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, reencode(t, s).Unobserved(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

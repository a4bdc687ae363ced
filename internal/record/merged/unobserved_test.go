package merged

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/redquake/redquake/internal/record"
)

// A server is unobserved until there is a reading of it; the last error is why.
func TestUnobserved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		learned []record.Unobserved
		read    []record.Server
		want    []record.Unobserved
	}{
		"never read": {
			[]record.Unobserved{
				{Address: "b:1", Reason: "refused"},
				{Address: "a:1", Reason: "refused"},
				{Address: "b:1", Reason: "NOPERM"},
			},
			nil,
			[]record.Unobserved{{Address: "a:1", Reason: "refused"}, {Address: "b:1", Reason: "NOPERM"}},
		},
		"read after all": {
			[]record.Unobserved{{Address: "", Reason: "refused"}, {Address: "", Reason: ""}},
			[]record.Server{{Address: "a:1"}},
			nil,
		},
		"read before it failed": {
			[]record.Unobserved{{Address: "a:1", Reason: "refused"}, {Address: "b:1", Reason: "refused"}},
			[]record.Server{{Address: "a:1"}},
			[]record.Unobserved{{Address: "b:1", Reason: "refused"}},
		},
		"read, and never failed": {
			[]record.Unobserved{{Address: "a:1", Reason: ""}},
			[]record.Server{{Address: "a:1"}},
			nil,
		},
		"nothing is known of it yet": {nil, nil, nil},
	} {
		s := newTestSeries(1)
		iv := record.NewInterval(0, len(s.Ops))
		iv.Pods, iv.Unobserved, iv.Servers = 1, c.learned, c.read
		if err := s.Add(0, &iv); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, reencode(t, s).Unobserved(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

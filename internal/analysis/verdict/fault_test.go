package verdict

import (
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/durations"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/result"
)

// hit is a fault with a dip of 60 %, an outage of 2 s and 7 errors, recovered after 5 s, but for what changes says.
func hit(changes ...func(*impact.Impact)) *result.Fault {
	m := &impact.Impact{
		Recovered:    true,
		Dip:          impact.Dip{Value: 0.6, Of: impact.All},
		Outage:       impact.Outage{Bounded: durations.Exactly(2 * time.Second), Of: impact.Load},
		RecoveryTime: durations.Exactly(5 * time.Second),
		Errors:       7,
	}
	for _, change := range changes {
		change(m)
	}
	return result.NewFault(m, result.FaultInput{})
}

// judgeFault judges a fault that lost 3 writes.
func judgeFault(o *v1alpha1.FaultObjectives, r *result.Fault) Judgement {
	return Conclude(append(Fault(o, r),
		InStatus(Losses(o, &result.Losses{Count: result.Count{AtLeast: 3, AtMost: 3}}))...), r.Doubts, Missed{}, nil)
}

func TestEachObjectiveOfAFault(t *testing.T) {
	type objectives = v1alpha1.FaultObjectives
	for _, tc := range []struct {
		name        string
		unit        v1alpha1.Unit
		limit       v1alpha1.Decimal
		met, missed objectives
	}{
		{
			"maxOutage",
			v1alpha1.UnitSeconds,
			"2",
			objectives{MaxOutage: d(2 * time.Second)},
			objectives{MaxOutage: d(1999 * time.Millisecond)},
		},
		{
			"maxRecoveryTime",
			v1alpha1.UnitSeconds,
			"5",
			objectives{MaxRecoveryTime: d(5 * time.Second)},
			objectives{MaxRecoveryTime: d(4999 * time.Millisecond)},
		},
		{"maxTPSDip", v1alpha1.UnitShare, "0.6", objectives{MaxTPSDip: new("60%")}, objectives{MaxTPSDip: new("59.9%")}},
		{"maxErrors", v1alpha1.UnitCount, "7", objectives{MaxErrors: new(int64(7))}, objectives{MaxErrors: new(int64(6))}},
		{
			"maxLostWrites",
			v1alpha1.UnitCount,
			"3",
			objectives{MaxLostWrites: new(int64(3))},
			objectives{MaxLostWrites: new(int64(2))},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			checkObjective(t, tc.name, tc.unit, tc.limit, judgeFault(&tc.met, hit()), judgeFault(&tc.missed, hit()))
		})
	}
	checkUnjudged(t, "maxLostWrites",
		Conclude(InStatus(Losses(&objectives{MaxLostWrites: new(int64(3))}, nil)), nil, Missed{}, nil))
}

// The bounds of a figure decide: a limit between them is inconclusive.
func TestObjectiveComparesBounds(t *testing.T) {
	outage := durations.Bounded{Value: 2 * time.Second, AtLeast: 1900 * time.Millisecond, AtMost: 2100 * time.Millisecond}
	for limit, want := range map[time.Duration]*bool{
		2100 * time.Millisecond: new(true),
		2099 * time.Millisecond: nil,
		1900 * time.Millisecond: nil,
		1899 * time.Millisecond: new(false),
	} {
		o := atMost("maxOutage", d(limit), outage, true)
		if (o.Met == nil) != (want == nil) || o.Met != nil && *o.Met != *want || *o.AtLeast != 1.9 || *o.AtMost != 2.1 ||
			*o.Actual != 2 {
			t.Errorf("limit %s: %+v", limit, o)
		}
		if s := InStatus(set(o))[0]; s.AtLeast != "1.9" || s.AtMost != "2.1" || s.Actual != "2" ||
			s.Unit != v1alpha1.UnitSeconds {
			t.Errorf("in a status: %+v", s)
		}
		if o.Met == nil && (!strings.Contains(o.Message, "between 1.9s and 2.1s") ||
			judge(InStatus(set(o)), nil, "", "").Verdict != v1alpha1.VerdictInconclusive) {
			t.Errorf("limit %s: %q", limit, o.Message)
		}
	}
}

// The aggregate hides an outage of one shard; the objective counts it.
func TestMaxOutageCountsTheWorstShard(t *testing.T) {
	f := hit(func(m *impact.Impact) {
		m.Outage = impact.Outage{Bounded: durations.Exactly(50 * time.Second), Of: impact.Shard, Shard: 2}
	})
	for limit, want := range map[time.Duration]v1alpha1.Verdict{
		5 * time.Second: v1alpha1.VerdictFail,
		time.Minute:     v1alpha1.VerdictPass,
	} {
		j := judgeFault(&v1alpha1.FaultObjectives{MaxOutage: d(limit)}, f)
		if j.Verdict != want || want == v1alpha1.VerdictFail && j.Message != "maxOutage is 50s, limit 5s (Shard 2)" {
			t.Errorf("limit %s: %s, %s", limit, j.Verdict, j.Message)
		}
	}
}

// The reads hide that the writes are dead; the objective counts these.
func TestMaxTPSDipCountsTheWorseKind(t *testing.T) {
	f := hit(func(m *impact.Impact) { m.Dip = impact.Dip{Value: 0.95, Of: impact.Writes} })
	for limit, want := range map[string]v1alpha1.Verdict{"94%": v1alpha1.VerdictFail, "95%": v1alpha1.VerdictPass} {
		j := judgeFault(&v1alpha1.FaultObjectives{MaxTPSDip: &limit}, f)
		if j.Verdict != want || want == v1alpha1.VerdictFail && j.Message != "maxTPSDip is 95%, limit 94% (Writes)" {
			t.Errorf("limit %s: %s, %s", limit, j.Verdict, j.Message)
		}
	}
}

func TestMissingRecoveryExceedsEveryLimit(t *testing.T) {
	f := hit(func(m *impact.Impact) { m.Recovered, m.RecoveryTime = false, durations.Exactly(-1) })
	j := judgeFault(&v1alpha1.FaultObjectives{MaxRecoveryTime: d(time.Hour)}, f)
	if o := judgedOne(t, j, v1alpha1.VerdictFail); o.Actual != "" || !strings.Contains(j.Message, "no recovery") {
		t.Errorf("%+v: %s", o, j.Message)
	}
}

func TestVerdictWithDoubtIsInconclusive(t *testing.T) {
	f := hit()
	f.Doubts = []impact.Doubt{{Reason: impact.BaselineTooShort, Message: "only 3s were measured"}}
	if j := judgeFault(nil, f); j.Verdict != v1alpha1.VerdictInconclusive ||
		j.Message != "too little was measured before the fault" {
		t.Errorf("%s: %s", j.Verdict, j.Message)
	}
	if j := judgeFault(nil, hit()); j.Verdict != v1alpha1.VerdictPass {
		t.Errorf("%s: %s", j.Verdict, j.Message)
	}
}

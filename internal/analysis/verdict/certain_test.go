package verdict

import (
	"maps"
	"slices"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/impact"
	"github.com/redquake/redquake/internal/result"
)

// What a stop condition ended has hurt more than allowed, whatever is in doubt: of the objectives nothing is said then.
func TestAStopConditionFailsWhateverIsInDoubt(t *testing.T) {
	t.Parallel()
	objectives := InStatus(set(countWithin("maxErrors", new(int64(0)), &result.Count{AtLeast: 7, AtMost: 7})))
	stopped := Missed{Message: "spec.stopIf.outage: 5s, limit 1s", Certain: true}
	for name, tc := range map[string]struct {
		doubts []impact.Doubt
		missed Missed
		want   v1alpha1.Verdict
		says   string
	}{
		"no doubt": {nil, stopped, v1alpha1.VerdictFail, stopped.Message + "; maxErrors is 7, limit 0"},
		"a doubt":  {[]impact.Doubt{{Reason: impact.DownBefore}}, stopped, v1alpha1.VerdictFail, stopped.Message},
		"a missed deadline": {
			[]impact.Doubt{{Reason: impact.DownBefore}},
			Missed{Message: "no recovery"},
			v1alpha1.VerdictInconclusive,
			"an outage had begun before the fault",
		},
	} {
		if j := Conclude(objectives, tc.doubts, tc.missed, nil); j.Verdict != tc.want || j.Message != tc.says {
			t.Errorf("%s: %s: %q, want %s: %q", name, j.Verdict, j.Message, tc.want, tc.says)
		}
	}
}

// An acknowledged write that is gone is gone, whatever is not known of rates and outages: too many of them are a Fail of
// a load and of a fault. Where it is in doubt what happened to the servers, or when, they may not be the fault's.
func TestLostWritesCountWhateverIsInDoubtOfTheRest(t *testing.T) {
	t.Parallel()
	uncertain := []string{
		impact.DownBefore, impact.NoLoad, "EffectUnconfirmed", "NotInjected", "TwoPrimaries", v1alpha1.ReasonNotConfirmed,
		v1alpha1.ReasonOverstayed, "a reason of which nothing is known",
	}
	ofAnotherFault := []string{"ClockDrift", "ClockStepped", "ClockUncertainty"} // but lost all the same
	for _, reason := range append(slices.Collect(maps.Keys(reasons)), uncertain...) {
		for _, limit := range []int64{2, 3, 5} { // missed, perhaps missed, met, by 3 to 4
			lost := &result.Count{AtLeast: 3, AtMost: 4}
			doubts := []impact.Doubt{{Reason: reason, Message: "load pod 0"}}
			ofFault := Conclude(InStatus(set(
				countWithin("maxErrors", new(int64(0)), &result.Count{AtLeast: 7, AtMost: 7}),
				countWithin(MaxLostWrites, &limit, lost),
			)), doubts, Missed{}, &result.Losses{Count: *lost})
			load := &result.Load{Checked: result.Checked{Verification: &result.Verification{}}, Doubts: doubts}
			load.Total.Requests, load.Total.OK = 10, 10
			load.Verification.SetLost(*lost)
			ofLoad := Load(&v1alpha1.Objectives{MaxLostWrites: &limit}, load)
			for of, got := range map[string]Judgement{"fault": ofFault, "load": ofLoad} {
				want := v1alpha1.VerdictInconclusive
				if limit == 2 && !slices.Contains(uncertain, reason) && (of == "load" || !slices.Contains(ofAnotherFault, reason)) {
					want = v1alpha1.VerdictFail
				}
				switch {
				case got.Verdict != want:
					t.Errorf("%s, %s, limit %d: %s: %s, want %s", of, reason, limit, got.Verdict, got.Message, want)
				case want == v1alpha1.VerdictFail && got.Message != "maxLostWrites is between 3 and 4, limit 2":
					t.Errorf("%s, %s: it says %q", of, reason, got.Message)
				}
			}
		}
	}
}

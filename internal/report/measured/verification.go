package measured

import (
	"fmt"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/result"
)

// Verification is what was read back after a load; nil = nothing was.
func Verification(v *result.Verification) *report.Section {
	if v == nil {
		return nil
	}
	sec := &report.Section{ID: "ledger", Title: "Acknowledged writes, read back"}
	switch lost := v.LostWrites(); {
	case lost == nil:
		sec.Finding = report.Text("How many were lost is not known: " + report.Sentence(v.Unread))
	case lost.AtMost == 0:
		sec.Finding = report.Text("").
			Strong(fmt.Sprintf("None of %s was lost", report.Count(v.Acknowledged))).
			Add(": a sample of all writes, so that a loss of a few can go unseen.")
	default:
		known := ": exact for these, a lower bound for all writes of the load."
		if _, exact := lost.Exact(); !exact {
			known = ": Redis may have evicted the others that are absent."
		}
		sec.Finding = report.Text("").
			Damage(fmt.Sprintf("%s of %s were lost", bounds(lost), report.Count(v.Acknowledged))).Add(known)
	}
	sec.Facts = []report.Fact{
		{Name: "Acknowledged", Value: report.Count(v.Acknowledged)},
		{
			Name:   "Unknown",
			Value:  report.Count(v.Unknown),
			Detail: report.Count(v.UnknownPresent) + " of them were found",
		},
		{Name: "Failed", Value: report.Count(v.Failed)},
	}
	sec.Facts = append(sec.Facts, executions(v)...)
	sec.Facts = append(sec.Facts, report.Fact{
		Name:   "Replicas read",
		Value:  report.Count(v.Replicas),
		Detail: report.Count(v.ReplicaMissing) + " missing at the worst",
	})
	// the status does not have when
	lost := v.LostWrites()
	if lost != nil && lost.AtMost > 0 && v.LastLost > 0 {
		seen := "no client saw an error then"
		if v.Errors > 0 {
			seen = fmt.Sprintf("about %s requests failed then", report.Count(v.Errors))
		}
		sec.Facts = append(sec.Facts, report.Fact{
			Name:   "The lost ones were acknowledged",
			Value:  report.Seconds(v.FirstLost) + " to " + report.Seconds(v.LastLost) + " after the start",
			Detail: seen,
		})
	}
	if st := v.Stale; st != nil {
		sec.Facts = append(sec.Facts, report.Fact{
			Name:  "Stale reads",
			Value: report.Count(st.Stale),
			Detail: fmt.Sprintf("of %s, at most %s writes and %s behind; %s went backwards",
				report.Count(st.Reads), report.Count(st.MaxWrites), report.Seconds(st.MaxBehind),
				report.Count(st.Backwards)),
		})
	}
	if d := v.Dual; d != nil {
		f := report.Fact{Name: "Writes at a second primary", Value: report.Count(d.Writes)}
		if d.Writes > 0 {
			f.Detail = report.Seconds(d.First) + " to " + report.Seconds(d.Last) + " after the start"
		}
		sec.Facts = append(sec.Facts, f)
	}
	sec.Note = v.Settings
	return sec
}

// executions is how often the server executed what a library sent; nil if it did not count that.
func executions(v *result.Verification) (facts []report.Fact) {
	if n := v.FailedButExecuted; n != nil {
		facts = append(facts, report.Fact{
			Name:   "Failed but executed",
			Value:  report.Count(*n),
			Detail: "the application saw an error, and the write is there",
		})
	}
	if n := v.ExecutedTwice; n != nil {
		facts = append(facts, report.Fact{
			Name:   "Executed twice",
			Value:  report.Count(*n),
			Detail: "or more often: the library sent them again",
		})
	}
	return facts
}

// bounds is a number, or what it is between.
func bounds(c *result.Count) string {
	if n, exact := c.Exact(); exact {
		return report.Count(n)
	}
	return report.Count(c.AtLeast) + " to " + report.Count(c.AtMost)
}

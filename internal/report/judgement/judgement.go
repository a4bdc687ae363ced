// Package judgement makes a report say the same of its objectives and its doubts everywhere: at its
// head, beside its figures and in its tables.
package judgement

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/report"
)

// MostWords is how long a sentence at the head of a report may be.
const MostWords = 25

// Headline joins a beginning with its explanation, unless that makes the sentence too long: then
// what follows the badge, or Doubts, explains it.
func Headline(beginning, explanation string) string {
	explanation = strings.TrimSuffix(explanation, ".")
	if explanation == "" ||
		len(strings.Fields(beginning))+len(strings.Fields(explanation)) > MostWords {
		return beginning + "."
	}
	return beginning + ": " + explanation + "."
}

// Inconclusive is the head of the report of a subject whose figures are in doubt, or of which an
// objective could not be judged.
func Inconclusive(d *report.Document) report.Prose {
	const beginning = "Not conclusive"
	own := ownDoubts(d)
	if len(own) == 0 {
		for _, o := range d.Objectives {
			if o.Of == "" && o.Judged == report.NotJudged {
				return report.Text(Headline(beginning, o.Name+" could not be judged"))
			}
		}
		return report.Text(Headline(beginning, d.Reason))
	}
	why := verdict.Phrase(own[0].Reason, own[0].Message)
	if n := len(own) - 1; n > 0 {
		why += fmt.Sprintf(" (and %d other reason%s)", n, report.Plural(n))
	}
	return report.Text(Headline(beginning, why))
}

// ownDoubts are those about the subject, not about the faults on it.
func ownDoubts(d *report.Document) []report.Doubt {
	return slices.DeleteFunc(slices.Clone(d.Doubts), func(o report.Doubt) bool { return o.Of != "" })
}

// Settle makes a document say the same of its doubts everywhere: beside the badge how many there
// are, and of no objective about doubtful figures that it is met or missed. verdicts are those of the
// faults on the subject, by their names.
func Settle(d *report.Document, verdicts map[string]report.Verdict) {
	own := len(ownDoubts(d))
	if d.Verdict == report.Inconclusive && own > 0 {
		d.Reason = fmt.Sprintf("%d reason%s not to trust the figures, under Doubts.", own,
			report.Plural(own))
	}
	for i := range d.Objectives {
		o := &d.Objectives[i]
		of := verdicts[o.Of]
		if o.Of == "" {
			of = d.Verdict
		}
		if !doubtful(d, o, of) {
			continue
		}
		o.Judged = report.NotJudged
		if o.Message == "" {
			o.Message = o.Name + " is not judged: the figures are in doubt"
		}
	}
}

// doubtful reports whether an objective is about figures in doubt, given the verdict on its subject:
// an Inconclusive one judges none, and a Fail in spite of doubts only those that withstand them.
func doubtful(d *report.Document, o *report.Objective, of report.Verdict) bool {
	judged := verdict.Judged{
		Name: o.Name, Unit: o.Unit, Met: o.Judged == report.Met, OfLoad: d.Kind == report.LoadTest && o.Of == "",
	}
	return slices.ContainsFunc(d.Doubts, func(doubt report.Doubt) bool {
		return doubt.Of == o.Of &&
			(of == report.Inconclusive || of == report.Fail && !judged.Withstands(doubt.Reason))
	})
}

// objectiveFor names the objective about a figure.
var objectiveFor = map[string]string{
	"throughput":   "minThroughput",
	"latencyP50":   "maxLatencyP50",
	"latencyP99":   "maxLatencyP99",
	"latencyP999":  "maxLatencyP999",
	"errorRate":    "maxErrorRate",
	"lostWrites":   verdict.MaxLostWrites,
	"outage":       "maxOutage",
	"recoveryTime": "maxRecoveryTime",
	"dip":          "maxTPSDip",
	"errors":       "maxErrors",
}

// SetLimits sets the limits of the figures from the objectives.
func SetLimits(d *report.Document) {
	for i := range d.Figures {
		f := &d.Figures[i]
		for _, o := range d.Objectives {
			if o.Name != objectiveFor[f.Name] || o.Of != f.Of {
				continue
			}
			f.Limit, f.Judged = new(o.Limit), o.Judged
			// outside of the faults, or of the worst of several
			if o.Actual != nil && f.Value != nil && math.Abs(*o.Actual-*f.Value) > 1e-6*math.Abs(*f.Value) {
				f.Counted = o.Actual
			}
		}
	}
}

// FirstMissed says which objective is missed, with the figure and the limit; "" = none.
func FirstMissed(d *report.Document) string {
	if d.Verdict != report.Fail {
		return ""
	}
	for _, o := range d.Objectives {
		if o.Judged == report.Missed && o.Of == "" {
			if o.Actual == nil {
				return report.Sentence(o.Message)
			}
			return fmt.Sprintf("%s is %s, limit %s.", o.Name, report.InUnit(o.Unit, *o.Actual),
				report.InUnit(o.Unit, o.Limit))
		}
	}
	return ""
}

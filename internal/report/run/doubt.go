package run

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/report"
)

// noResult is the reason for the doubt about a record of which nobody knows what was measured, and required.
const noResult = "NoResult"

const effectUnconfirmed = "EffectUnconfirmed"

// mostWords is how long a sentence at the head of a report may be.
const mostWords = 25

// headline joins a beginning with its explanation, unless that makes the sentence too long: then what follows the badge, or Doubts, explains it.
func headline(beginning, explanation string) string {
	explanation = strings.TrimSuffix(explanation, ".")
	if explanation == "" || len(strings.Fields(beginning))+len(strings.Fields(explanation)) > mostWords {
		return beginning + "."
	}
	return beginning + ": " + explanation + "."
}

// notConclusive is the head of the report of a subject whose figures are in doubt, or of which an objective could not be judged.
func notConclusive(d *report.Document) report.Prose {
	const beginning = "Not conclusive"
	own := ownDoubts(d)
	if len(own) == 0 {
		for _, o := range d.Objectives {
			if o.Of == "" && o.Judged == report.NotJudged {
				return report.Text(headline(beginning, o.Name+" could not be judged"))
			}
		}
		return report.Text(headline(beginning, d.Reason))
	}
	why := verdict.Phrase(own[0].Reason, own[0].Message)
	if n := len(own) - 1; n > 0 {
		why += fmt.Sprintf(" (and %d other reason%s)", n, report.Plural(n))
	}
	return report.Text(headline(beginning, why))
}

// ownDoubts are those about the subject, not about the faults on it.
func ownDoubts(d *report.Document) []report.Doubt {
	return slices.DeleteFunc(slices.Clone(d.Doubts), func(o report.Doubt) bool { return o.Of != "" })
}

// settleDoubts makes a document say the same of its doubts everywhere: beside the badge how many there are, and of no objective about doubtful figures that it is
// met or missed. doubted are the faults whose figures are in doubt.
func settleDoubts(d *report.Document, doubted map[string]bool) {
	own := len(ownDoubts(d))
	if d.Verdict == report.Inconclusive && own > 0 {
		d.Reason = fmt.Sprintf("%d reason%s not to trust the figures, under Doubts.", own, report.Plural(own))
	}
	for i := range d.Objectives {
		o := &d.Objectives[i]
		if doubted[o.Of] || o.Of == "" && d.Verdict == report.Inconclusive && own > 0 {
			o.Judged = report.NotJudged
			if o.Message == "" {
				o.Message = o.Name + " is not judged: the figures are in doubt"
			}
		}
	}
}

// unlisted is the doubt of an inconclusive verdict whose reason is in its condition only.
func unlisted(conditions []metav1.Condition, of string) report.Doubt {
	one := report.Doubt{Reason: string(report.Inconclusive), Of: of}
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionObjectivesMet); c != nil {
		one.Message = c.Message
	}
	return one
}

package run

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/report"
)

// noResult is the reason for the doubt about a record of which nobody knows what was measured, and
// required.
const noResult = "NoResult"

const effectUnconfirmed = "EffectUnconfirmed"

// unlisted is the doubt of an inconclusive verdict whose reason is in its condition only.
func unlisted(conditions []metav1.Condition, of string) report.Doubt {
	one := report.Doubt{Reason: string(report.Inconclusive), Of: of}
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionObjectivesMet); c != nil {
		one.Message = c.Message
	}
	return one
}

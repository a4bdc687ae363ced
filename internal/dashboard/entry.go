package dashboard

import (
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/report"
)

// OfLoadTest is the entry of a load test.
func OfLoadTest(t *v1alpha1.RedisLoadTest) Object {
	o := entry(LoadTests, &t.ObjectMeta, t.Status.Conditions, t.Status.Verdict)
	if d := t.Status.Display; d != nil {
		progress := d.Progress
		if o.Over {
			progress = ""
		}
		o.Figures = known("progress", progress, "throughput", rate(d.TPS), "p99", d.P99,
			"errors", d.Errors, "faults", d.Faults, "lost writes", d.LostWrites)
	}
	return o
}

// OfFault is the entry of a fault.
func OfFault(f *v1alpha1.RedisFault) Object {
	o := entry(Faults, &f.ObjectMeta, f.Status.Conditions, f.Status.Verdict)
	o.Type = string(f.Spec.Action.Type)
	if d := f.Status.Display; d != nil {
		o.Figures = known("target", d.Target, "dip", d.Dip, "outage", d.Outage, "recovery", d.Recovery,
			"lost writes", d.LostWrites, "while active", d.WhileActive)
	}
	return o
}

// OfExperiment is the entry of an experiment.
func OfExperiment(e *v1alpha1.RedisExperiment) Object {
	o := entry(Experiments, &e.ObjectMeta, e.Status.Conditions, e.Status.Verdict)
	if d := e.Status.Display; d != nil {
		o.Figures = known("runs", d.Progress, "cells", d.Cells, "worse", d.Worse, "next", d.Next)
	}
	return o
}

// OfSchedule is the entry of a schedule.
func OfSchedule(s *v1alpha1.RedisExperimentSchedule) Object {
	o := entry(Schedules, &s.ObjectMeta, s.Status.Conditions, s.Status.Verdict)
	o.Type = s.Spec.Schedule
	ready := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ConditionReady)
	if ready != nil {
		o.Status = ready.Reason
	}
	if d := s.Status.Display; d != nil {
		o.Figures = known("last", d.Last, "next", d.Next)
	}
	return o
}

func entry(
	resource string, object *metav1.ObjectMeta, conditions []metav1.Condition,
	verdict v1alpha1.Verdict,
) Object {
	o := Object{
		Key: Key{
			Resource:  resource,
			Namespace: object.Namespace,
			Name:      object.Name,
		},
		Verdict:  report.Verdict(verdict),
		Created:  object.CreationTimestamp.Time,
		Revision: string(object.UID) + "/" + object.ResourceVersion,
	}
	o.Failed = meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionFailed)
	o.Over = o.Failed || meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionComplete)
	complete := meta.FindStatusCondition(conditions, v1alpha1.ConditionComplete)
	if complete != nil {
		o.Status = complete.Reason
		if o.Failed {
			o.Message = complete.Message
		}
	}
	return o
}

// known are the figures that have a value, of names and values in turn.
func known(namesAndValues ...string) (list []report.Fact) {
	for i := 0; i+1 < len(namesAndValues); i += 2 {
		if namesAndValues[i+1] != "" {
			list = append(list, report.Fact{
				Name:  namesAndValues[i],
				Value: typeset(namesAndValues[i+1]),
			})
		}
	}
	return list
}

// rate is a throughput of a status as reports write it.
func rate(tps string) string {
	x, err := strconv.ParseFloat(tps, 64)
	if err != nil {
		return tps
	}
	return report.Rate(x)
}

// unit is one behind a number, as statuses write it.
var unit = regexp.MustCompile(`(^|[ -])([<>]?[0-9.]+)(us|µs|ms|s|%)($|[ ,-])`)

// typeset is a figure of a status as reports write it, such as 1.2 ms for 1.2ms.
func typeset(text string) string {
	for range 2 { // what is between two figures of a range belongs to one match
		text = unit.ReplaceAllString(text, "$1$2\u00a0$3$4")
	}
	return strings.ReplaceAll(text, "\u00a0us", "\u00a0µs")
}

package schedule_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing/synctest"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// lasting lets the eight loads of a run take so long together.
func lasting(run time.Duration) func(*v1alpha1.RedisExperimentSchedule) {
	return func(s *v1alpha1.RedisExperimentSchedule) {
		s.Spec.Template.Spec.Template.Spec.Load.Duration = operatortest.Length(run / 8)
	}
}

// eventsOf are the notes of the events with a reason, by object, in virtual time: they are sent beside what they tell
// of.
func eventsOf(p *operatortest.Place, reason string) map[string][]string {
	p.T.Helper()
	synctest.Wait()
	var all eventsv1.EventList
	p.MustChange(p.Client.List(context.Background(), &all))
	notes := map[string][]string{}
	for _, e := range all.Items {
		if e.Reason == reason {
			notes[e.Regarding.Name] = append(notes[e.Regarding.Name], e.Note)
		}
	}
	return notes
}

// refusing lets the API server refuse to create runs, as a quota does, and counts how often.
func refusing(count *atomic.Int32, refused func(name string) bool) operatortest.Spy {
	return operatortest.Spy{Before: func(w operatortest.Write) error {
		if e, is := w.Object.(*v1alpha1.RedisExperiment); is && w.Verb == "create" && refused(e.Name) {
			count.Add(1)
			return apierrors.NewForbidden(schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "redisexperiments"},
				e.Name, errors.New("exceeded quota: runs"))
		}
		return nil
	}}
}

// scheduledRuns are the runs of a schedule that exist.
func scheduledRuns(p *operatortest.Place, name string) (runs []string) {
	p.T.Helper()
	var all v1alpha1.RedisExperimentList
	p.MustChange(p.Client.List(context.Background(), &all))
	for i := range all.Items {
		if all.Items[i].Labels[v1alpha1.LabelSchedule] == name {
			runs = append(runs, all.Items[i].Name)
		}
	}
	return runs
}

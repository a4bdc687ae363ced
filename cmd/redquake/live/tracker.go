package live

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/record/merged"
)

// Tracker makes a State of what watches show.
type Tracker struct {
	objects map[types.UID]*kube.Object
	courses map[string]*Course
	gone    map[types.UID]bool
	trouble string
}

// NewTracker returns a tracker that has seen nothing.
func NewTracker() *Tracker {
	return &Tracker{
		objects: map[types.UID]*kube.Object{},
		courses: map[string]*Course{},
		gone:    map[types.UID]bool{},
	}
}

// Apply takes a change. The error says that an object cannot be read by this program.
func (t *Tracker) Apply(change kube.Change) error {
	if trouble := change.Trouble; trouble != nil {
		t.trouble = trouble.Error()
		return nil //nolint:nilerr // it is shown
	}
	t.trouble = ""
	if change.Object == nil {
		return nil
	}
	if change.Object.GetKind() == "ConfigMap" {
		return t.applyRecord(change)
	}
	o, err := kube.ObjectOf(change.Object)
	if o == nil || err != nil {
		return err
	}
	uid := o.Meta().UID
	if change.Deleted {
		t.gone[uid] = true
		return nil
	}
	t.objects[uid] = o
	if o.Kind == kube.LoadTest {
		if o.Test.Status.StartTime == nil {
			delete(t.courses, o.Test.Name) // it begins again, or has not begun
		} else if course := t.courses[o.Test.Name]; course != nil {
			course.Extend(o.Test)
		} else {
			t.courses[o.Test.Name] = &Course{tail: o.Test.Status.Summary}
		}
	}
	return nil
}

// applyRecord takes the record of a load test, as it is stored so far.
func (t *Tracker) applyRecord(change kube.Change) error {
	test := change.Object.GetLabels()[v1alpha1.LabelLoadTest]
	if change.Deleted || change.Object.GetName() != children.ResultsName(test) {
		return nil
	}
	data, err := recordIn(change.Object)
	if err != nil || len(data) == 0 {
		return err
	}
	series, err := merged.Decode(data)
	if err != nil {
		return fmt.Errorf("ConfigMap %s: %w", change.Object.GetName(), err)
	}
	course, err := CourseOf(series)
	if err != nil {
		return fmt.Errorf("ConfigMap %s: %w", change.Object.GetName(), err)
	}
	if before := t.courses[test]; before != nil {
		course.tail = before.tail
		for _, row := range before.Rows {
			if row.At >= course.End() && row.P99 == 0 { // from a status that is newer
				course.Rows = append(course.Rows, row)
			}
		}
	}
	t.courses[test] = course
	return nil
}

// Gone reports whether an object was deleted.
func (t *Tracker) Gone(uid types.UID) bool {
	return t.gone[uid]
}

// Object is the latest state of an object; nil if it was not seen yet.
func (t *Tracker) Object(uid types.UID) *kube.Object {
	return t.objects[uid]
}

// State is what is known of the objects with these UIDs and of those that belong to them: the
// faults on a load test, the load test of a fault, and the run of an experiment that is under way.
func (t *Tracker) State(now time.Time, of []types.UID) *State {
	s := &State{
		Now:     now,
		Courses: t.courses,
		Trouble: t.trouble,
	}
	tests := map[string]bool{}
	for _, uid := range of {
		switch o := t.objects[uid]; {
		case o == nil:
		case o.Test != nil:
			tests[o.Test.Name] = true
		case o.Fault != nil:
			tests[LoadOf(o.Fault)] = true
		case o.Experiment.Status.Run != nil:
			tests[o.Experiment.Status.Run.LoadTest] = true
		}
	}
	for uid, o := range t.objects {
		belongs := o.Test != nil && tests[o.Test.Name] || o.Fault != nil && tests[LoadOf(o.Fault)]
		if slices.Contains(of, uid) || belongs && !t.gone[uid] {
			s.Objects = append(s.Objects, o)
		}
	}
	slices.SortFunc(s.Objects, func(a, b *kube.Object) int {
		return cmp.Or(cmp.Compare(slices.Index(kube.Kinds, a.Kind), slices.Index(kube.Kinds, b.Kind)),
			a.Meta().CreationTimestamp.Time.Compare(b.Meta().CreationTimestamp.Time),
			cmp.Compare(a.Meta().Name, b.Meta().Name))
	})
	return s
}

// LoadOf is the name of the load test that measures a fault.
func LoadOf(f *v1alpha1.RedisFault) string {
	switch {
	case f.Status.LoadTest != "":
		return f.Status.LoadTest
	case f.Spec.LoadTestRef != nil:
		return f.Spec.LoadTestRef.Name
	}
	return children.ProbeName(f.Name)
}

// recordIn is the encoded record in a ConfigMap; nil if it has none.
func recordIn(u *unstructured.Unstructured) ([]byte, error) {
	text, _, err := unstructured.NestedString(u.Object, "binaryData", children.ResultsSeriesKey)
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s: %w", u.GetName(), err)
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s: %w", u.GetName(), err)
	}
	return data, nil
}

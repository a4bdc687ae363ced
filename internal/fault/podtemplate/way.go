package podtemplate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
)

// way is a change of a template, and the way back.
type way struct {
	former  corev1.PodTemplateSpec
	changed corev1.PodTemplateSpec
}

// longestWay is the limit of both templates: the annotations of an object have at most 256 KiB.
const longestWay = 200 << 10

// marker is the content of AnnotationChangedPodTemplate.
type marker struct {
	Fault    string                 `json:"fault"` // its UID
	Template corev1.PodTemplateSpec `json:"template"`
}

// annotations are those of a StatefulSet that a fault changes. A Problem says that they are too
// long.
func (w way) annotations(fault string) (map[string]string, error) {
	former, err := json.Marshal(w.former)
	if err != nil {
		return nil, err
	}
	changed, err := json.Marshal(marker{Fault: fault, Template: w.changed})
	if err != nil {
		return nil, err
	}
	if n := len(former) + len(changed); n > longestWay {
		return nil, problem.Unsupported(
			"the former and the new template have %d bytes, and the annotations of the StatefulSet in which they are kept at most %d",
			n, longestWay)
	}
	return map[string]string{
		v1alpha1.AnnotationFormerPodTemplate:  string(former),
		v1alpha1.AnnotationChangedPodTemplate: string(changed),
	}, nil
}

// wayOf reads the annotations of a StatefulSet. It is false where the fault has not made any, or
// has removed them.
func wayOf(set *appsv1.StatefulSet, fault string) (w way, found bool, err error) {
	former, marked := set.Annotations[v1alpha1.AnnotationFormerPodTemplate]
	changed, both := set.Annotations[v1alpha1.AnnotationChangedPodTemplate]
	if !marked && !both {
		return w, false, nil
	}
	var m marker
	if json.Unmarshal([]byte(changed), &m) != nil ||
		json.Unmarshal([]byte(former), &w.former) != nil || len(w.former.Spec.Containers) == 0 {
		return w, false, fmt.Errorf(
			"somebody else changed the annotations %s and %s of StatefulSet %s, by which the template is put back. %s",
			v1alpha1.AnnotationFormerPodTemplate, v1alpha1.AnnotationChangedPodTemplate, set.Name,
			byHand(set))
	}
	if m.Fault != fault {
		return w, false, fmt.Errorf(
			"the annotations %s and %s of StatefulSet %s are of another fault, with the UID %s",
			v1alpha1.AnnotationFormerPodTemplate, v1alpha1.AnnotationChangedPodTemplate, set.Name, m.Fault)
	}
	w.changed = m.Template
	return w, true, nil
}

// byHand is what a person can do where the former template is lost.
func byHand(set *appsv1.StatefulSet) string {
	return fmt.Sprintf(
		"Put the template back by hand, for example by kubectl rollout undo statefulset/%s", set.Name)
}

// difference is what differs between two templates: sets of fields.
type difference struct{ added, modified, removed *fieldpath.Set }

func (d difference) all() *fieldpath.Set {
	return d.added.Union(d.modified).Union(d.removed)
}

// typedTemplate is a template with the schema of its fields, by which items of lists have names.
func typedTemplate(t *corev1.PodTemplateSpec) (*typed.TypedValue, error) {
	return applyconfigurations.NewTypeConverter(scheme.Scheme).ObjectToTyped(&corev1.PodTemplate{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodTemplate"}, Template: *t.DeepCopy(),
	}, typed.AllowDuplicates)
}

func compare(a, b *typed.TypedValue) (difference, error) {
	found, err := a.Compare(b)
	if err != nil {
		return difference{}, fmt.Errorf("compare the templates: %w", err)
	}
	return difference{found.Added, found.Modified, found.Removed}, nil
}

// fields are the names of what the fault changes.
func (w way) fields() ([]string, error) {
	former, changed, err := w.typed()
	if err != nil {
		return nil, err
	}
	own, err := compare(former, changed)
	if err != nil {
		return nil, err
	}
	if apiequality.Semantic.DeepEqual(w.former, w.changed) {
		return nil, nil
	}
	return names(own.all()), nil
}

func (w way) typed() (former, changed *typed.TypedValue, err error) {
	if former, err = typedTemplate(&w.former); err != nil {
		return nil, nil, err
	}
	changed, err = typedTemplate(&w.changed)
	return former, changed, err
}

// merge is what a template that may have been changed by others means for the fault's own change.
type merge struct {
	lost *fieldpath.Set // fields of the fault that have another value than it had set
	kept *fieldpath.Set // those among them that do not have the former value either
	// The others have the value of the fault: those that it had added, and those that it had modified
	// or removed.
	remove, restore *fieldpath.Set

	former, now *typed.TypedValue
}

// merge compares a template with both of the fault.
func (w way) merge(current *corev1.PodTemplateSpec) (m merge, err error) {
	var changed *typed.TypedValue
	if m.former, changed, err = w.typed(); err != nil {
		return m, err
	}
	if m.now, err = typedTemplate(current); err != nil {
		return m, err
	}
	own, errOwn := compare(m.former, changed)
	others, errOthers := compare(changed, m.now)
	since, errSince := compare(m.former, m.now)
	if err := errors.Join(errOwn, errOthers, errSince); err != nil {
		return m, err
	}
	m.sort(own, paths(others.all()), since.all())
	return m, nil
}

// sort divides the fault's own fields into those that it may change, and those that somebody else
// has touched.
func (m *merge) sort(own difference, touched []fieldpath.Path, differs *fieldpath.Set) {
	isTouched := func(path fieldpath.Path) bool {
		return slices.ContainsFunc(touched, func(t fieldpath.Path) bool { return within(t, path) })
	}
	// An item of a list that the fault has added, and in which somebody else has changed something, is
	// left as it is.
	var left []fieldpath.Path
	for _, path := range paths(own.added) {
		if isItem(path) && isTouched(path) {
			left = append(left, path)
		}
	}
	isLeft := func(path fieldpath.Path) bool {
		return slices.ContainsFunc(left, func(l fieldpath.Path) bool { return within(path, l) })
	}
	free := func(path fieldpath.Path) bool { return !isLeft(path) && !isTouched(path) }
	m.remove = only(own.added, free)
	m.restore = only(own.modified.Union(own.removed), free)
	m.lost, m.kept = fieldpath.NewSet(), fieldpath.NewSet()
	mine := own.all()
	for _, t := range touched {
		if !mine.Has(t) && !isLeft(t) {
			continue
		}
		m.lost.Insert(t)
		if differs.Has(t) {
			m.kept.Insert(t)
		}
	}
}

// only is the part of a set for which something is true.
func only(all *fieldpath.Set, is func(fieldpath.Path) bool) *fieldpath.Set {
	some := fieldpath.NewSet()
	for _, path := range paths(all) {
		if is(path) {
			some.Insert(path)
		}
	}
	return some
}

// lost are the fields of the fault that a template does not have as it had set them.
func (w way) lost(current *corev1.PodTemplateSpec) ([]string, error) {
	if apiequality.Semantic.DeepEqual(*current, w.changed) {
		return nil, nil
	}
	m, err := w.merge(current)
	if err != nil {
		return nil, err
	}
	return names(m.lost), nil
}

// back is a template without the change of the fault: what others have changed meanwhile stays.
// kept are the fields of the fault that they have changed.
func (w way) back(
	current *corev1.PodTemplateSpec,
) (template corev1.PodTemplateSpec, kept []string, err error) {
	if apiequality.Semantic.DeepEqual(*current, w.changed) {
		return w.former, nil, nil
	}
	m, err := w.merge(current)
	if err != nil {
		return template, nil, err
	}
	if m.remove.Empty() && m.restore.Empty() {
		return *current, names(m.kept), nil
	}
	result := m.now.RemoveItems(m.remove)
	if !m.restore.Empty() {
		if result, err = result.Merge(m.former.ExtractItems(m.restore,
			typed.WithAppendKeyFields())); err != nil {
			return template, nil, fmt.Errorf("merge the former template: %w", err)
		}
	}
	var whole corev1.PodTemplate
	content, ok := result.AsValue().Unstructured().(map[string]any)
	if !ok {
		return template, nil, fmt.Errorf("the merged template is a %T", result.AsValue().Unstructured())
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &whole); err != nil {
		return template, nil, fmt.Errorf("decode the merged template: %w", err)
	}
	return whole.Template, names(m.kept), nil
}

func paths(set *fieldpath.Set) (all []fieldpath.Path) {
	for path := range set.All() {
		all = append(all, path.Copy())
	}
	return all
}

// within reports whether a path is another one, or below it.
func within(path, above fieldpath.Path) bool {
	return len(path) >= len(above) && path[:len(above)].Equals(above)
}

// isItem reports whether a path is an item of a list.
func isItem(path fieldpath.Path) bool {
	return len(path) > 0 && path[len(path)-1].Key != nil
}

// names are fields as people write them, each without what is below it and without what it is only
// a part of: an added item of a list, not each of its fields.
func names(set *fieldpath.Set) []string {
	var named []fieldpath.Path
	all := paths(set)
	for _, path := range all {
		inItem := slices.ContainsFunc(all, func(o fieldpath.Path) bool {
			return isItem(o) &&
				len(o) < len(path) && within(path, o)
		})
		above := !isItem(path) &&
			slices.ContainsFunc(all, func(o fieldpath.Path) bool {
				return len(o) > len(path) &&
					within(o, path)
			})
		if !inItem && !above {
			named = append(named, path)
		}
	}
	var found []string
	for _, path := range named {
		found = append(found, strings.TrimPrefix(strings.TrimPrefix(path.String(), ".template"), "."))
	}
	slices.Sort(found)
	return found
}

// inWords lists fields, at most eight.
func inWords(fields []string) string {
	const most = 8
	if n := len(fields) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(fields[:most], ", "), n)
	}
	return strings.Join(fields, ", ")
}

package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Kind is a kind of redquake.dev.
type Kind struct {
	Name     string // such as RedisFault
	Resource string // such as redisfaults
	short    string
	longest  int // name of an object
}

// The kinds.
var (
	LoadTest   = Kind{"RedisLoadTest", "redisloadtests", "rlt", 52}
	Fault      = Kind{"RedisFault", "redisfaults", "rfault", 46}
	Experiment = Kind{"RedisExperiment", "redisexperiments", "rexp", 28}
	Schedule   = Kind{"RedisExperimentSchedule", "redisexperimentschedules", "rexps", 18}

	// Kinds are those whose objects run and end, in the order in which these are created; AllKinds has
	// Schedule, too.
	Kinds    = []Kind{LoadTest, Fault, Experiment}
	AllKinds = []Kind{LoadTest, Fault, Experiment, Schedule}
)

// generated is how many characters the API server appends to metadata.generateName.
const generated = 5

// GenerateName is the metadata.generateName of an object that is made of another one: what has room
// of the name of that, and a suffix.
func (k Kind) GenerateName(name, suffix string) string {
	return name[:min(len(name), k.longest-len(suffix)-generated)] + suffix
}

// GVR is the resource with its group and version.
func (k Kind) GVR() schema.GroupVersionResource {
	return v1alpha1.GroupVersion.WithResource(k.Resource)
}

// Singular is the kind in references, such as redisfault.
func (k Kind) Singular() string {
	return strings.ToLower(k.Name)
}

// KindOf is the kind of a name, as in YAML or on the command line; false if it is none.
func KindOf(name string) (Kind, bool) {
	name = strings.TrimSuffix(strings.ToLower(name), "."+v1alpha1.GroupVersion.Group)
	i := slices.IndexFunc(AllKinds, func(k Kind) bool {
		return name == k.Singular() ||
			name == k.Resource || name == k.short
	})
	if i < 0 {
		return Kind{}, false
	}
	return AllKinds[i], true
}

// Object is an object of redquake.dev: one of Test, Fault, Experiment and Schedule is set.
type Object struct {
	Kind       Kind
	Test       *v1alpha1.RedisLoadTest
	Fault      *v1alpha1.RedisFault
	Experiment *v1alpha1.RedisExperiment
	Schedule   *v1alpha1.RedisExperimentSchedule
}

// ObjectOf decodes an object; nil if it is of another group.
func ObjectOf(u *unstructured.Unstructured) (*Object, error) {
	kind, ok := KindOf(u.GetKind())
	if !ok || u.GroupVersionKind().GroupVersion() != v1alpha1.GroupVersion {
		return nil, nil
	}
	o := &Object{Kind: kind}
	var into any
	switch kind {
	case LoadTest:
		o.Test = &v1alpha1.RedisLoadTest{}
		into = o.Test
	case Fault:
		o.Fault = &v1alpha1.RedisFault{}
		into = o.Fault
	case Schedule:
		o.Schedule = &v1alpha1.RedisExperimentSchedule{}
		into = o.Schedule
	default:
		o.Experiment = &v1alpha1.RedisExperiment{}
		into = o.Experiment
	}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into)
	if err != nil {
		return nil, fmt.Errorf("decode %s %s: %w", kind.Name, u.GetName(), err)
	}
	return o, nil
}

// Meta is the metadata of the object.
func (o *Object) Meta() *metav1.ObjectMeta {
	switch o.Kind {
	case LoadTest:
		return &o.Test.ObjectMeta
	case Fault:
		return &o.Fault.ObjectMeta
	case Schedule:
		return &o.Schedule.ObjectMeta
	}
	return &o.Experiment.ObjectMeta
}

// Ref is the object as kubectl takes it, such as redisfault/kill-primary.
func (o *Object) Ref() string {
	return o.Kind.Singular() + "/" + o.Meta().Name
}

// Conditions of the object.
func (o *Object) Conditions() []metav1.Condition {
	switch o.Kind {
	case LoadTest:
		return o.Test.Status.Conditions
	case Fault:
		return o.Fault.Status.Conditions
	case Schedule:
		return o.Schedule.Status.Conditions
	}
	return o.Experiment.Status.Conditions
}

// Verdict is that of the object; "" if it has none.
func (o *Object) Verdict() v1alpha1.Verdict {
	switch o.Kind {
	case LoadTest:
		return o.Test.Status.Verdict
	case Fault:
		return o.Fault.Status.Verdict
	case Schedule:
		return o.Schedule.Status.Verdict
	}
	return o.Experiment.Status.Verdict
}

// NotObserved is the reason of an object that the operator has not seen yet.
const NotObserved = "NotObserved"

// State is the reason and the message of the condition Complete, of a schedule Ready: where the
// object stands.
func (o *Object) State() (reason, message string) {
	condition := v1alpha1.ConditionComplete
	if o.IsSchedule() {
		condition = v1alpha1.ConditionReady
	}
	c := meta.FindStatusCondition(o.Conditions(), condition)
	if c != nil {
		return c.Reason, c.Message
	}
	return NotObserved, "the operator has not seen it yet"
}

func (o *Object) is(condition string) bool {
	return meta.IsStatusConditionTrue(o.Conditions(), condition)
}

// Failed reports whether the object could not run to its end.
func (o *Object) Failed() bool {
	return o.is(v1alpha1.ConditionFailed)
}

// Finished reports whether the object is over, however it ended. What a fault did is reverted then,
// unless Unreverted says otherwise.
func (o *Object) Finished() bool {
	return o.is(v1alpha1.ConditionComplete) || o.Failed()
}

// Acts reports whether a fault has recorded targets that are not all reverted.
func (o *Object) Acts() bool {
	if o.Kind != Fault {
		return false
	}
	s := &o.Fault.Status
	return s.Holding != nil && *s.Holding ||
		s.InjectedAt != nil && s.RevertedAt == nil && len(s.Targets) > 0
}

// Unreverted are, of a fault of which the operator has given up the revert, the commands to do so
// by hand, by pod.
func (o *Object) Unreverted() []string {
	if o.Kind != Fault {
		return nil
	}
	var left []string
	for i := range o.Fault.Status.Targets {
		if t := &o.Fault.Status.Targets[i]; t.RevertAbandoned {
			left = append(left, t.Pod+": "+t.ManualRevertCommand)
		}
	}
	return left
}

// IsSchedule reports whether the object creates runs, and never ends.
func (o *Object) IsSchedule() bool {
	return o.Kind == Schedule
}

// Read reads an object by its kind and name; nil if there is none.
func (c *Client) Read(ctx context.Context, kind Kind, name string) (*Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind.Name))
	u.SetName(name)
	found, err := c.Get(ctx, u)
	if found == nil || err != nil {
		return nil, Explain(err, "read "+kind.Name+" "+name)
	}
	return ObjectOf(found)
}

// Find reads the object that an argument names: KIND/NAME, or a name that only one of the kinds
// has. Kinds that the user may not read count only if none of the others has the name.
func (c *Client) Find(ctx context.Context, arg string, kinds ...Kind) (*Object, error) {
	if prefix, name, ok := strings.Cut(arg, "/"); ok {
		kind, known := KindOf(prefix)
		if !known || !slices.Contains(kinds, kind) {
			return nil, fmt.Errorf("%s: the kind must be %s", arg, either(kinds))
		}
		arg, kinds = name, []Kind{kind}
	}
	var found []*Object
	var forbidden error
	for _, kind := range kinds {
		switch o, err := c.Read(ctx, kind, arg); {
		case IsNotPermitted(err):
			forbidden = errors.Join(forbidden, err)
		case err != nil:
			return nil, err
		case o != nil:
			found = append(found, o)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && forbidden != nil:
		return nil, forbidden
	case len(found) == 0:
		return nil, fmt.Errorf("there is no %s %s in namespace %s", either(kinds), arg, c.Namespace)
	}
	return nil, fmt.Errorf("%s is ambiguous in namespace %s: say %s or %s", arg, c.Namespace,
		found[0].Ref(), found[1].Ref())
}

func either(kinds []Kind) string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " or " + names[last]
	}
	return names[0]
}

// All lists the objects of a kind in a namespace; "" = all namespaces.
func (c *Client) All(ctx context.Context, kind Kind, namespace string) ([]*Object, error) {
	list, err := c.List(ctx, kind.GVR(), namespace, metav1.ListOptions{})
	if err != nil {
		return nil, Explain(err, "list "+kind.Resource)
	}
	var all []*Object
	for i := range list {
		o, err := ObjectOf(&list[i])
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// Suspend sets spec.suspend of a schedule.
func (c *Client) Suspend(ctx context.Context, o *Object) error {
	m := o.Meta()
	err := c.Patch(ctx, o.Kind.GVR(), m.Namespace, m.Name, `{"spec":{"suspend":true}}`)
	return Explain(err, "suspend "+o.Ref())
}

// Abort sets spec.abort of an object.
func (c *Client) Abort(ctx context.Context, o *Object) error {
	m := o.Meta()
	err := c.Patch(ctx, o.Kind.GVR(), m.Namespace, m.Name, `{"spec":{"abort":true}}`)
	return Explain(err, "abort "+o.Ref())
}

package follow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/written"
	"github.com/redquake/redquake/cmd/redquake/kube"
)

// creator makes the objects of files in a cluster.
type creator struct {
	client *kube.Client
	notes  io.Writer
	name   string // of the program, for advice
	rerun  bool   // objects that are over get a new name
	stop   <-chan struct{}
}

// create applies all objects, and returns those of redquake.dev. What the cluster refuses of these
// is found before anything is created, unless the files hold a namespace, without which nothing in
// it can be checked.
func (c *creator) create(ctx context.Context, all []*written.Object) ([]*kube.Object, error) {
	first := slices.IndexFunc(all, (*written.Object).Ours)
	others, ours := all[:first], all[first:]
	steps := []func() error{func() error {
		return c.check(ctx,
			ours)
	}, func() error { return c.prepare(ctx, others) }}
	if slices.ContainsFunc(others, func(w *written.Object) bool {
		return w.Content.GetKind() == "Namespace"
	}) {
		slices.Reverse(steps)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	renamed := map[string]string{} // load tests
	var made []*kube.Object
	for _, w := range ours {
		o, err := c.createOne(ctx, w, renamed)
		if err != nil {
			return made, errors.Join(err, c.abort(ctx, made))
		}
		made = append(made, o)
	}
	return made, nil
}

// awaited are the kinds of which objects must be ready before the run, by group: workloads, and
// Jobs, which may make a cluster of servers, for example.
var awaited = map[schema.GroupKind]string{
	{Group: appsv1.GroupName, Kind: "StatefulSet"}: "statefulsets",
	{Group: appsv1.GroupName, Kind: "Deployment"}:  "deployments",
	{Group: batchv1.GroupName, Kind: "Job"}:        "jobs",
}

// prepare applies what is not of redquake.dev, and waits until the workloads among it are ready: a
// load test waits for its Redis for a while only.
func (c *creator) prepare(ctx context.Context, others []*written.Object) error {
	for _, w := range others {
		_, err := c.client.Apply(ctx, w.Content, false)
		if err != nil {
			return fmt.Errorf("%s: %w", w.File, kube.Explain(err, "apply "+w.Ref()))
		}
		fmt.Fprintf(c.notes, "%s applied\n", w.Ref())
	}
	for _, w := range others {
		resource := awaited[w.Content.GroupVersionKind().GroupKind()]
		if resource != "" {
			err := c.awaitReady(ctx, w, w.Content.GroupVersionKind().GroupVersion().WithResource(resource))
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// patience is how long the workloads of a file may take to become ready, their images included.
const patience = 5 * time.Minute

func (c *creator) awaitReady(
	ctx context.Context, w *written.Object, resource schema.GroupVersionResource,
) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	changes := make(chan kube.Change)
	err := c.client.Follow(ctx, resource, w.Content.GetNamespace(), w.Content.GetName(), changes)
	if err != nil {
		return err
	}
	last := "it was not seen"
	for {
		select {
		case change := <-changes:
			if change.Lasting {
				return change.Trouble
			}
			if change.Object == nil {
				continue
			}
			now, ready, err := readiness(change.Object)
			if err != nil {
				return fmt.Errorf("%s: %w", w.Ref(), err)
			}
			if ready {
				return nil
			}
			if now != last {
				last = now
				fmt.Fprintf(c.notes, "%s: %s\n", w.Ref(), now)
			}
		case <-c.stop:
			return &cli.Failure{
				Code: cli.ExitInterrupted,
				Err:  fmt.Errorf("interrupted before the run: %s and what else was applied stays", w.Ref()),
			}
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready within %s: %s", w.Ref(), patience, last)
		}
	}
}

// readiness is how far an object is in words, and whether it is ready: of a workload, all pods of
// its present spec. A Job that failed never is.
func readiness(u *unstructured.Unstructured) (now string, ready bool, err error) {
	if u.GetKind() == "Job" {
		return completion(u)
	}
	want, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if !found {
		want = 1
	}
	have, _, _ := unstructured.NestedInt64(u.Object, "status", "readyReplicas")
	updated, _, _ := unstructured.NestedInt64(u.Object, "status", "updatedReplicas")
	seen, _, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	return fmt.Sprintf("%d of %d pods are ready", have, want),
		have >= want && updated >= want && seen >= u.GetGeneration(), nil
}

func completion(job *unstructured.Unstructured) (now string, done bool, err error) {
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	for _, c := range conditions {
		switch c, _ := c.(map[string]any); {
		case c["status"] != "True":
		case c["type"] == string(batchv1.JobComplete):
			return "", true, nil
		case c["type"] == string(batchv1.JobFailed):
			return "", false, fmt.Errorf("failed: %v", c["message"])
		}
	}
	return "not complete", false, nil
}

// check finds what is over already, and what the API server refuses, before anything is created.
func (c *creator) check(ctx context.Context, ours []*written.Object) error {
	var errs []error
	for _, w := range ours {
		errs = append(errs, c.checkOne(ctx, w))
	}
	return errors.Join(errs...)
}

func (c *creator) checkOne(ctx context.Context, w *written.Object) error {
	o, err := kube.ObjectOf(w.Content)
	if err != nil {
		return fmt.Errorf("%s: %w", w.File, err)
	}
	if o == nil {
		return fmt.Errorf("%s: %s is of %s, this program knows %s", w.File, w.Ref(),
			w.Content.GroupVersionKind().GroupVersion(), v1alpha1.GroupVersion)
	}
	space := w.Content.GetNamespace()
	if space != "" && space != c.client.Namespace {
		return fmt.Errorf("%s: %s is of namespace %s, not %s: set --namespace", w.File, w.Ref(), space,
			c.client.Namespace)
	}
	if w.Content.GetName() != "" {
		there, err := c.client.Get(ctx, w.Content)
		if err != nil {
			return fmt.Errorf("%s: %w", w.File, kube.Explain(err, "read "+w.Ref()))
		}
		if over, err := c.isOver(there); over || err != nil {
			return err
		}
	}
	_, err = c.client.Apply(ctx, w.Content.DeepCopy(), true)
	if err != nil {
		return fmt.Errorf("%s: %w", w.File, kube.Explain(err, "create "+w.Ref()))
	}
	return nil
}

// isOver reports whether an object has ended, so that it gets a new name; the error says so if it
// is not to.
func (c *creator) isOver(there *unstructured.Unstructured) (bool, error) {
	if there == nil {
		return false, nil
	}
	o, err := kube.ObjectOf(there)
	if err != nil || !o.Finished() {
		return false, err
	}
	if c.rerun {
		return true, nil
	}
	reason, _ := o.State()
	if v := o.Verdict(); v != "" {
		reason += ", " + string(v)
	}
	return true, fmt.Errorf(
		"%s exists, and is over (%s): an object runs once. --rerun creates another one with the same "+
			"spec and a new name; `%s rerun %s` does so without the file",
		o.Ref(), reason, c.name, o.Ref())
}

// createOne creates an object. renamed are the load tests that got a new name, for the faults on
// them.
func (c *creator) createOne(
	ctx context.Context, w *written.Object, renamed map[string]string,
) (*kube.Object, error) {
	var there *unstructured.Unstructured
	var err error
	if w.Content.GetName() != "" {
		if there, err = c.client.Get(ctx, w.Content); err != nil {
			return nil, fmt.Errorf("%s: %w", w.File, kube.Explain(err, "read "+w.Ref()))
		}
	}
	over, err := c.isOver(there)
	if err != nil {
		return nil, err
	}
	was := w.Content.GetName()
	if over {
		renew(w.Content, w.Kind)
	}
	if to, ok := renamed[loadTestRef(w.Content)]; ok {
		_ = unstructured.SetNestedField(w.Content.Object, to, "spec", "loadTestRef", "name")
	}
	made, err := c.client.Apply(ctx, w.Content, false)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.File, kube.Explain(err, "create "+w.Ref()))
	}
	if over && w.Kind == kube.LoadTest {
		renamed[was] = made.GetName()
	}
	o, err := kube.ObjectOf(made)
	if err != nil {
		return nil, err
	}
	switch {
	case there == nil:
		fmt.Fprintf(c.notes, "%s created\n", o.Ref())
	case over:
		fmt.Fprintf(c.notes, "%s created, with the spec of %s\n", o.Ref(), was)
	default:
		fmt.Fprintf(c.notes, "%s exists and is not over: following it\n", o.Ref())
	}
	return o, nil
}

func loadTestRef(u *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(u.Object, "spec", "loadTestRef", "name")
	return name
}

// renew makes a new object of one that has run: without what the API server and others have set,
// and with a name that the API server completes.
func renew(u *unstructured.Unstructured, kind kube.Kind) {
	first := u.GetAnnotations()[v1alpha1.AnnotationRerunOf]
	if first == "" {
		first = u.GetName()
	}
	labels := u.GetLabels()
	for name := range labels {
		if strings.HasPrefix(name, v1alpha1.GroupVersion.Group+"/") {
			delete(labels, name) // it belongs to no experiment and no schedule
		}
	}
	next := &unstructured.Unstructured{Object: map[string]any{"spec": u.Object["spec"]}}
	next.SetGroupVersionKind(u.GroupVersionKind())
	next.SetNamespace(u.GetNamespace())
	next.SetGenerateName(kind.GenerateName(first, "-"))
	next.SetLabels(labels)
	next.SetAnnotations(map[string]string{v1alpha1.AnnotationRerunOf: first})
	unstructured.RemoveNestedField(next.Object, "spec", "abort")
	unstructured.RemoveNestedField(next.Object, "spec", "suspend")
	u.Object = next.Object
}

// abort aborts what was created before something else was refused.
func (c *creator) abort(ctx context.Context, made []*kube.Object) error {
	var errs []error
	for _, o := range made {
		if err := c.client.Abort(ctx, o); err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(c.notes, "%s aborted\n", o.Ref())
	}
	return errors.Join(errs...)
}

//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/await"
)

const labelScenario = "redquake.dev/e2e"

// suiteID distinguishes this run's namespaces from those of another.
var suiteID = fmt.Sprintf("run-%d", time.Now().Unix())

// namespace is the namespace of one test.
type namespace struct {
	*testing.T
	name  string
	began time.Time
}

// newNamespace makes a namespace under the restricted Pod Security Standard. It is deleted at the end of the test, and
// shown before if the test failed.
func newNamespace(t *testing.T, scenario string) *namespace {
	t.Helper()
	return makeNamespace(t, metav1.ObjectMeta{GenerateName: "e2e-" + scenario + "-"})
}

// makeNamespace adds its labels to those given.
func makeNamespace(t *testing.T, meta metav1.ObjectMeta) *namespace {
	t.Helper()
	labels := map[string]string{labelScenario: suiteID, "pod-security.kubernetes.io/enforce": "restricted"}
	maps.Copy(labels, meta.Labels)
	meta.Labels = labels
	ns := &corev1.Namespace{ObjectMeta: meta}
	if err := cluster.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	n := &namespace{T: t, name: ns.Name, began: time.Now()}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if t.Failed() {
			n.dump(ctx)
		}
		if err := client.IgnoreNotFound(cluster.Delete(ctx, ns)); err != nil {
			t.Error(err)
		}
	})
	return n
}

// in is the same namespace for a subtest.
func (n *namespace) in(t *testing.T) *namespace {
	return &namespace{T: t, name: n.name, began: n.began}
}

func (n *namespace) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: n.name, Name: name}
}

func (n *namespace) create(object client.Object) {
	n.Helper()
	object.SetNamespace(n.name)
	if err := cluster.Create(n.Context(), object); err != nil {
		n.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
}

// get reads an object; false if there is none of that name.
func (n *namespace) get(name string, object client.Object) bool {
	n.Helper()
	err := cluster.Get(n.Context(), n.key(name), object)
	if apierrors.IsNotFound(err) {
		return false
	}
	if err != nil {
		n.Fatalf("get %T %s: %v", object, name, err)
	}
	return true
}

func (n *namespace) list(list client.ObjectList, options ...client.ListOption) {
	n.Helper()
	if err := cluster.List(n.Context(), list, append(options, client.InNamespace(n.name))...); err != nil {
		n.Fatalf("list %T: %v", list, err)
	}
}

func (n *namespace) delete(object client.Object, options ...client.DeleteOption) {
	n.Helper()
	if err := cluster.Delete(n.Context(), object, options...); err != nil {
		n.Fatalf("delete %T %s: %v", object, object.GetName(), err)
	}
}

// patch changes fields of an object as a user would with kubectl patch.
func (n *namespace) patch(object client.Object, merge string) {
	n.Helper()
	if err := cluster.Patch(n.Context(), object,
		client.RawPatch("application/merge-patch+json", []byte(merge))); err != nil {
		n.Fatalf("patch %T %s with %s: %v", object, object.GetName(), merge, err)
	}
}

// patience is how long a test waits for what takes seconds on an idle machine.
const patience = 2 * time.Minute

// watched calls check now and whenever the object of a name changes, until it returns done; state is the last
// observation, for messages.
func (n *namespace) watched(
	within time.Duration, what string, kind client.ObjectList, name string, check func() (done bool, state string),
) {
	n.Helper()
	ctx, cancel := context.WithTimeout(n.Context(), within)
	defer cancel()
	state := "nothing"
	for ctx.Err() == nil {
		changes, err := cluster.Watch(ctx, kind, client.InNamespace(n.name), client.MatchingFields{"metadata.name": name})
		if err != nil {
			state = err.Error()
			await.Pass(time.Second, "the time to the next try of a watch")
			continue
		}
		for more := true; more; _, more = <-changes.ResultChan() { // the API server ends a watch now and then
			var done bool
			if done, state = check(); done {
				changes.Stop()
				return
			}
		}
	}
	n.Fatalf("%s: not within %s; last state: %s", what, within, state)
}

// eventually calls check until it returns done; state is the last observation, for messages.
func (n *namespace) eventually(within time.Duration, what string, check func() (done bool, state string)) {
	n.Helper()
	await.Within(n.T, within, what, func() error {
		done, state := check()
		return await.That(done, "last state: %s", state)
	})
}

// dump logs the objects of the namespace and the operator's log.
func (n *namespace) dump(ctx context.Context) {
	var text strings.Builder
	var tests v1alpha1.RedisLoadTestList
	var faults v1alpha1.RedisFaultList
	var pods corev1.PodList
	var events corev1.EventList
	for _, list := range []client.ObjectList{&tests, &faults, &pods, &events} {
		if err := cluster.List(ctx, list, client.InNamespace(n.name)); err != nil {
			fmt.Fprintf(&text, "list %T: %v\n", list, err)
		}
	}
	for i := range tests.Items {
		t := &tests.Items[i]
		show(&text, "RedisLoadTest "+t.Name, t.Status.Conditions)
		t.Status.Conditions = nil
		show(&text, "figures", t.Status)
	}
	for i := range faults.Items {
		f := &faults.Items[i]
		show(&text, "RedisFault "+f.Name, f.Status.Conditions)
		f.Status.Conditions = nil
		show(&text, "figures", f.Status)
	}
	for _, p := range pods.Items {
		fmt.Fprintf(&text, "pod %s on %s: %s %s %s\n", p.Name, p.Spec.NodeName, p.Status.Phase, p.Status.Reason,
			p.Status.Message)
		for _, c := range p.Status.ContainerStatuses {
			show(&text, fmt.Sprintf("  container %s, %d restarts", c.Name, c.RestartCount), c.State)
		}
	}
	// A pod that is kept down is scheduled hundreds of times: what repeats is told once, with its first time.
	var order []string
	first, times := map[string]string{}, map[string]int32{}
	for _, e := range events.Items {
		at := e.FirstTimestamp.Time
		if at.IsZero() {
			at = e.EventTime.Time
		}
		what := fmt.Sprintf("%s %s/%s: %s", e.Reason, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Message)
		if times[what] == 0 {
			first[what] = at.Format("15:04:05")
			order = append(order, what)
		}
		times[what] += max(1, e.Count)
	}
	for _, what := range order {
		fmt.Fprintf(&text, "event %s, %d times: %s\n", first[what], times[what], what)
	}
	n.Logf("namespace %s:\n%s\noperator:\n%s", n.name, text.String(), operatorLog(ctx, n.began))
}

// show writes an object, or each of a list of conditions, on one line.
func show(text *strings.Builder, title string, object any) {
	if conditions, ok := object.([]metav1.Condition); ok {
		fmt.Fprintf(text, "%s:\n", title)
		for _, c := range conditions {
			fmt.Fprintf(text, "  %-16s %-8s %s %s: %s\n", c.Type, c.Status, c.LastTransitionTime.Format("15:04:05"), c.Reason,
				c.Message)
		}
		return
	}
	out, err := json.Marshal(object)
	if err != nil {
		out = []byte(err.Error())
	}
	fmt.Fprintf(text, "%s: %s\n", title, out)
}

// inParallel runs scenarios at the same time, each as a test of its name, and returns when all have ended.
func (n *namespace) inParallel(scenarios map[string]func(*namespace)) {
	n.Run("group", func(t *testing.T) {
		for name, scenario := range scenarios {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				scenario(n.in(t))
			})
		}
	})
}

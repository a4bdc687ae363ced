//go:build integration

package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/target"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

func depsOf(reader client.Reader, cluster client.Client) contract.Deps {
	return contract.Deps{
		Redis:   target.Redis{Namespace: faulttest.Namespace, Live: reader},
		Cluster: cluster,
		Owner:   metav1.OwnerReference{Name: "lose", UID: "uid-lose"},
	}
}

// A node that is cordoned while a fault holds it stays cordoned, also if it was cordoned before: kubectl drain then
// changes nothing, and nothing shows that it was there.
func TestRevertLeavesTheCordonOfAnother(t *testing.T) {
	_, cluster := faulttest.RealAPIServer(t)
	set := func(t *testing.T, name string, unschedulable string) {
		patch := client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec": {"unschedulable": `+unschedulable+`}}`))
		faulttest.Must(t, cluster.Patch(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, patch,
			client.FieldOwner("kubectl-cordon")))
	}
	for name, tc := range map[string]struct {
		before, meanwhile func(t *testing.T, node string)
		stays             bool
	}{
		"nothing":            {},
		"cordoned-meanwhile": {meanwhile: func(t *testing.T, node string) { set(t, node, "true") }, stays: true},
		"cordoned-before":    {before: func(t *testing.T, node string) { set(t, node, "true") }, stays: true},
		"cordon-repeated": {before: func(t *testing.T, node string) {
			set(t, node,
				"true")
		}, meanwhile: func(t *testing.T, node string) { set(t, node, "true") }, stays: true},
		"cordoned-and-uncordoned": {before: func(t *testing.T, node string) {
			set(t, node,
				"true")
		}, meanwhile: func(t *testing.T, node string) { set(t, node, "null") }},
		"cordoned-by-server-apply": {meanwhile: func(t *testing.T, node string) { apply(t, cluster, node) }, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			newNode(t, cluster, name)
			deps := depsOf(cluster, cluster)
			if tc.before != nil {
				tc.before(t, name)
			}
			faulttest.MustPrepare(t, faulttest.Called(Taint(t.Context(), deps, name)), "is tainted from now on")
			if tc.meanwhile != nil {
				tc.meanwhile(t, name)
			}
			// it has the taint, whatever became of the cordon
			faulttest.Must(t, faulttest.Called(Taint(t.Context(), deps, name)))
			faulttest.Must(t, faulttest.Called(Untaint(t.Context(), deps, name)))
			node := &corev1.Node{}
			faulttest.Must(t, cluster.Get(t.Context(), client.ObjectKey{Name: name}, node))
			// The API server itself gives new and cordoned nodes taints.
			if node.Spec.Unschedulable != tc.stays || taintIndex(node) >= 0 || len(node.Annotations) > 0 {
				t.Errorf("unschedulable %v, want %v; taints %v, annotations %v", node.Spec.Unschedulable, tc.stays,
					node.Spec.Taints, node.Annotations)
			}
		})
	}
}

func apply(t *testing.T, cluster client.Client, node string) {
	t.Helper()
	patch := client.RawPatch(types.ApplyPatchType,
		[]byte(`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "`+node+`"}, "spec": {"unschedulable": true}}`))
	faulttest.Must(t, cluster.Patch(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, patch,
		client.FieldOwner("gitops")))
}

func newNode(t *testing.T, cluster client.Client, name string) {
	t.Helper()
	labels := map[string]string{corev1.LabelHostname: name} // as a kubelet sets
	faulttest.Must(t, cluster.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}))
}

// overtaken does something right after a node was read, once.
type overtaken struct {
	client.Reader
	by *func()
}

func (o overtaken) Get(
	ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption,
) error {
	err := o.Reader.Get(ctx, key, object, options...)
	if by := *o.by; by != nil {
		*o.by = nil
		by()
	}
	return err
}

// A node that is deleted, or replaced by another of its name, before a fault writes: the new one is not touched by the
// revert, and tainted only once it was read.
func TestNodeIsReplacedBetweenReadAndWrite(t *testing.T) {
	_, cluster := faulttest.RealAPIServer(t)
	for _, replaced := range []bool{false, true} {
		t.Run(fmt.Sprintf("replaced %v", replaced), func(t *testing.T) {
			name, by := fmt.Sprintf("node-%v", replaced), new(func())
			newNode(t, cluster, name)
			deps := depsOf(overtaken{cluster, by}, cluster)
			goes := func() {
				faulttest.Must(t, cluster.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
				if replaced {
					newNode(t, cluster, name)
				}
			}
			untouched := func(what string) {
				t.Helper()
				node := &corev1.Node{}
				if err := cluster.Get(t.Context(), client.ObjectKey{Name: name}, node); (err == nil) != replaced ||
					taintIndex(node) >= 0 || len(node.Annotations) > 0 {
					t.Errorf("after %s: %v, taints %v, annotations %v", what, err, node.Spec.Taints, node.Annotations)
				}
			}
			*by = goes
			if progress, err := Taint(t.Context(), deps, name); (err == nil) != replaced || replaced && progress.Complete() {
				t.Errorf("%+v, %v", progress, err)
			}
			untouched("an injection")
			if !replaced {
				newNode(t, cluster, name)
			}
			faulttest.MustPrepare(t, faulttest.Called(Taint(t.Context(), deps, name)), "is tainted from now on")
			*by = goes
			if progress, err := Untaint(t.Context(), deps, name); err != nil || replaced == progress.Complete() {
				t.Errorf("%+v, %v", progress, err)
			}
			untouched("a revert")
			faulttest.Must(t, faulttest.Called(Untaint(t.Context(), deps, name)))
			untouched("another revert")
		})
	}
}

// withFault knows the first fault: this API server does not have the kind.
type withFault struct{ client.Reader }

func (w withFault) Get(
	ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption,
) error {
	if fault, is := object.(*v1alpha1.RedisFault); is {
		fault.UID = "uid-lose"
		return nil
	}
	return w.Reader.Get(ctx, key, object, options...)
}

// An API server refuses two taints of one key and effect: of two faults, the second waits and comes next.
func TestTwoFaultsOnOneNode(t *testing.T) {
	_, cluster := faulttest.RealAPIServer(t)
	newNode(t, cluster, "shared")
	foreign := corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}
	node := &corev1.Node{}
	faulttest.Must(t, cluster.Get(t.Context(), client.ObjectKey{Name: "shared"}, node))
	node.Spec.Taints = append(node.Spec.Taints, foreign)
	faulttest.Must(t, cluster.Update(t.Context(), node))
	first, second := depsOf(cluster, cluster), depsOf(withFault{cluster}, cluster)
	second.Owner.Name, second.Owner.UID = "next", "uid-next"
	faulttest.MustPrepare(t, faulttest.Called(Taint(t.Context(), first, "shared")), "is tainted from now on")
	faulttest.MustPrepare(t, faulttest.Called(Taint(t.Context(), second, "shared")),
		"waiting for RedisFault shop/lose, which holds node shared")
	faulttest.Must(t, faulttest.Called(Untaint(t.Context(), second, "shared")))
	faulttest.Must(t, faulttest.Called(Untaint(t.Context(), first, "shared")))
	faulttest.MustPrepare(t, faulttest.Called(Taint(t.Context(), second, "shared")), "is tainted from now on")
	faulttest.Must(t, cluster.Get(t.Context(), client.ObjectKey{Name: "shared"}, node))
	if !taintedBy(node, second) || len(node.Annotations) != 1 ||
		!slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == "gpu" }) {
		t.Errorf("taints %v, annotations %v", node.Spec.Taints, node.Annotations)
	}
}

// The command for an emergency is one that kubectl takes, and leaves what kubectl cordon did.
func TestManualCommandWithKubectl(t *testing.T) {
	env, cluster := faulttest.RealAPIServer(t)
	newNode(t, cluster, "by-hand")
	deps := depsOf(cluster, cluster)
	faulttest.MustPrepare(t, faulttest.Called(Taint(t.Context(), deps, "by-hand")), "is tainted from now on")
	config := filepath.Join(t.TempDir(), "config")
	faulttest.Must(t, os.WriteFile(config, env.KubeConfig, 0o600))
	for _, command := range []string{"kubectl cordon by-hand", ManualUntaint(deps, "by-hand")} {
		shell := exec.CommandContext(t.Context(), "sh", "-ec", command)
		shell.Env = append(os.Environ(), "KUBECONFIG="+config, "PATH="+os.Getenv("KUBEBUILDER_ASSETS")+":"+os.Getenv("PATH"))
		if out, err := shell.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
	}
	node := &corev1.Node{}
	faulttest.Must(t, cluster.Get(t.Context(), client.ObjectKey{Name: "by-hand"}, node))
	if taintIndex(node) >= 0 || len(node.Annotations) > 0 || !node.Spec.Unschedulable {
		t.Errorf("taints %v, annotations %v, unschedulable %v; want only the cordon", node.Spec.Taints, node.Annotations,
			node.Spec.Unschedulable)
	}
}

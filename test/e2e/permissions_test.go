//go:build e2e

package e2e_test

import (
	"context"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
)

func TestPermissions(t *testing.T) {
	t.Parallel()
	permissions(t)
}

// permissions has two users create the same faults: one who may create faults and nothing else, and one with the
// cluster's edit. A pod is killed for the second one only, a node lost for neither.
func permissions(t *testing.T) {
	n := newNamespace(t, "permissions")
	const onlyFaults, editor = "redquake:only-faults", "redquake:editor"
	meta := metav1.ObjectMeta{Name: "only-faults"}
	n.create(&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"redisfaults"}, Verbs: []string{"create"}},
	}})
	n.create(&rbacv1.RoleBinding{
		ObjectMeta: meta,
		Subjects:   userSubject(onlyFaults),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
	})
	n.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "editor"}, Subjects: userSubject(editor),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
	})

	kill := v1alpha1.Action{Type: v1alpha1.FaultPodKill}
	n.refused(onlyFaults, kill,
		"type PodKill needs the permission to delete pods in namespace "+n.name+", which user "+onlyFaults+" does not have")
	n.refused(editor, v1alpha1.Action{Type: v1alpha1.FaultNodeLoss, NodeLoss: &v1alpha1.NodeLoss{Node: "node-a"}},
		"type NodeLoss needs the permission to patch nodes, which user "+editor+" does not have")
	if err := n.createAs(editor, kill); err != nil {
		t.Error(err)
	}
	if !n.get("permissions", &v1alpha1.RedisFault{}) {
		t.Error("the fault that was allowed does not exist")
	}
}

func userSubject(name string) []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}}
}

// refused expects that the API server refuses a user's fault with a message. It learns of roles a moment after they
// were created.
func (n *namespace) refused(user string, action v1alpha1.Action, message string) {
	n.Helper()
	n.eventually(patience, "have a fault of "+user+" refused with "+message, func() (bool, string) {
		err := n.createAs(user, action)
		if err == nil {
			n.Fatalf("%s may create a fault of type %s", user, action.Type)
		}
		return apierrors.IsForbidden(err) && strings.HasSuffix(err.Error(), message), err.Error()
	})
}

// createAs creates a fault as a user. Its load test does not exist: nothing is broken.
func (n *namespace) createAs(user string, action v1alpha1.Action) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := client.New(config, client.Options{Scheme: cluster.Scheme()})
	if err != nil {
		return err
	}
	return c.Create(context.WithoutCancel(n.Context()), &v1alpha1.RedisFault{
		ObjectMeta: metav1.ObjectMeta{Name: "permissions", Namespace: n.name},
		Spec:       v1alpha1.RedisFaultSpec{LoadTestRef: &v1alpha1.LoadTestReference{Name: "none"}, Action: action},
	})
}

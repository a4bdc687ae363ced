//go:build integration

package controllers

import (
	"bytes"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/internal/fault/declared"
	"github.com/redquake/redquake/internal/rights"
	"github.com/redquake/redquake/internal/testing/cluster"
)

// restrict has the operators of a place act as a ServiceAccount of its home, which has no rights yet except those
// there.
func (p *place) restrict() {
	p.t.Helper()
	p.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.home()}})
	p.config = rest.CopyConfig(p.config)
	p.config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + p.home() + ":" + rights.Prefix + "controller-manager",
	}
	p.grantIn(p.home(), "config/rbac/policy_role.yaml", "config/rbac/policy_role_binding.yaml")
}

// grant creates the roles and bindings of files of config in the place, those of the cluster under names of its own.
func (p *place) grant(files ...string) {
	p.t.Helper()
	p.grantIn(p.namespace, files...)
}

func (p *place) grantIn(namespace string, files ...string) {
	p.t.Helper()
	for _, file := range files {
		for _, document := range documentsOf(p.t, file) {
			p.grantOne(namespace, document)
		}
	}
}

func documentsOf(t *testing.T, file string) [][]byte {
	t.Helper()
	path, err := cluster.Path(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(text, []byte("\n---\n"))
}

func (p *place) grantOne(namespace string, document []byte) {
	p.t.Helper()
	var kind metav1.TypeMeta
	p.mustChange(yaml.Unmarshal(document, &kind))
	subjects := []rbacv1.Subject{
		{Kind: rbacv1.ServiceAccountKind, Namespace: p.home(), Name: rights.Prefix + "controller-manager"},
	}
	switch kind.Kind {
	case "Role":
		var role rbacv1.Role
		p.mustChange(yaml.UnmarshalStrict(document, &role))
		role.Namespace = namespace
		p.create(&role)
	case "RoleBinding":
		var binding rbacv1.RoleBinding
		p.mustChange(yaml.UnmarshalStrict(document, &binding))
		binding.Namespace, binding.Subjects = namespace, subjects
		p.create(&binding)
	case "ClusterRole":
		var role rbacv1.ClusterRole
		p.mustChange(yaml.UnmarshalStrict(document, &role))
		role.Name += "-" + p.namespace
		p.mustChange(p.client.Create(p.t.Context(), &role))
	case "ClusterRoleBinding":
		var binding rbacv1.ClusterRoleBinding
		p.mustChange(yaml.UnmarshalStrict(document, &binding))
		binding.Name += "-" + p.namespace
		binding.RoleRef.Name += "-" + p.namespace
		binding.Subjects = subjects
		p.mustChange(p.client.Create(p.t.Context(), &binding))
	default:
		p.t.Fatalf("%s is no role", kind.Kind)
	}
}

// The roles of an operator with rights in one namespace, without those for kinds of faults.
const (
	rolesOfNamespace = "config/namespaced/roles/"
	finalizerRoles   = "config/namespaced/cluster/finalizer_role"
)

// grantNamespaced grants what the installation for one namespace has, for these kinds only.
func (p *place) grantNamespaced(kinds ...*declared.Kind) {
	p.t.Helper()
	p.grant(rolesOfNamespace+"role.yaml", finalizerRoles+".yaml", finalizerRoles+"_binding.yaml")
	for _, kind := range kinds {
		p.grantKind(kind)
	}
}

// grantKind grants what a kind of fault needs, on nodes as well.
func (p *place) grantKind(kind *declared.Kind) {
	p.t.Helper()
	if len(kind.Grants) == 0 {
		return
	}
	p.grant(rolesOfNamespace + kind.Name() + ".yaml")
	if len(kind.On(true)) == 0 {
		return
	}
	for _, document := range documentsOf(p.t, "config/components/node-faults/"+kind.Name()+".yaml") {
		if bytes.Contains(document, []byte("name: "+kind.RoleName(true))) { // its other rights are those of the Role
			p.grantOne("", document)
		}
	}
}

//go:build integration

package operator

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
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// restrict has the operators of a place act as a ServiceAccount of its home, which has no rights yet except those
// there.
func restrict(p *operatortest.Place) {
	p.T.Helper()
	p.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: p.Home()}})
	p.Config = rest.CopyConfig(p.Config)
	p.Config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + p.Home() + ":" + rights.Prefix + "controller-manager",
	}
	grantIn(p, p.Home(), "config/rbac/own_namespace_role.yaml", "config/rbac/own_namespace_role_binding.yaml")
}

// grant creates the roles and bindings of files of config in the place, those of the cluster under names of its own.
func grant(p *operatortest.Place, files ...string) {
	p.T.Helper()
	grantIn(p, p.Namespace, files...)
}

func grantIn(p *operatortest.Place, namespace string, files ...string) {
	p.T.Helper()
	for _, file := range files {
		for _, document := range documentsOf(p.T, file) {
			grantOne(p, namespace, document)
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

func grantOne(p *operatortest.Place, namespace string, document []byte) {
	p.T.Helper()
	var kind metav1.TypeMeta
	p.MustChange(yaml.Unmarshal(document, &kind))
	subjects := []rbacv1.Subject{
		{Kind: rbacv1.ServiceAccountKind, Namespace: p.Home(), Name: rights.Prefix + "controller-manager"},
	}
	switch kind.Kind {
	case "Role":
		var role rbacv1.Role
		p.MustChange(yaml.UnmarshalStrict(document, &role))
		role.Namespace = namespace
		p.Create(&role)
	case "RoleBinding":
		var binding rbacv1.RoleBinding
		p.MustChange(yaml.UnmarshalStrict(document, &binding))
		binding.Namespace, binding.Subjects = namespace, subjects
		p.Create(&binding)
	case "ClusterRole":
		var role rbacv1.ClusterRole
		p.MustChange(yaml.UnmarshalStrict(document, &role))
		role.Name += "-" + p.Namespace
		p.MustChange(p.Client.Create(p.T.Context(), &role))
	case "ClusterRoleBinding":
		var binding rbacv1.ClusterRoleBinding
		p.MustChange(yaml.UnmarshalStrict(document, &binding))
		binding.Name += "-" + p.Namespace
		binding.RoleRef.Name += "-" + p.Namespace
		binding.Subjects = subjects
		p.MustChange(p.Client.Create(p.T.Context(), &binding))
	default:
		p.T.Fatalf("%s is no role", kind.Kind)
	}
}

// The roles of an operator with rights in one namespace, without those for kinds of faults.
const (
	rolesOfNamespace = "config/namespaced/roles/"
	finalizerRoles   = "config/namespaced/cluster/finalizer_role"
)

// grantNamespaced grants what the installation for one namespace has, for these kinds only.
func grantNamespaced(p *operatortest.Place, kinds ...*declared.Kind) {
	p.T.Helper()
	grant(p, rolesOfNamespace+"role.yaml", finalizerRoles+".yaml", finalizerRoles+"_binding.yaml")
	for _, kind := range kinds {
		grantKind(p, kind)
	}
}

// grantKind grants what a kind of fault needs, on nodes as well.
func grantKind(p *operatortest.Place, kind *declared.Kind) {
	p.T.Helper()
	if len(kind.Grants) == 0 {
		return
	}
	grant(p, rolesOfNamespace+kind.Name()+".yaml")
	if len(kind.On(true)) == 0 {
		return
	}
	for _, document := range documentsOf(p.T, "config/components/node-faults/"+kind.Name()+".yaml") {
		if bytes.Contains(document, []byte("name: "+kind.RoleName(true))) { // its other rights are those of the Role
			grantOne(p, "", document)
		}
	}
}

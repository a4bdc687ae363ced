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

func managerOf(p *operatortest.Place) []rbacv1.Subject {
	return []rbacv1.Subject{
		{Kind: rbacv1.ServiceAccountKind, Namespace: p.Home(), Name: rights.Prefix + "controller-manager"},
	}
}

func grantOne(p *operatortest.Place, namespace string, document []byte) {
	p.T.Helper()
	var kind metav1.TypeMeta
	p.MustChange(yaml.Unmarshal(document, &kind))
	switch kind.Kind {
	case "Role":
		var role rbacv1.Role
		p.MustChange(yaml.UnmarshalStrict(document, &role))
		role.Namespace = namespace
		p.Create(&role)
	case "RoleBinding":
		var binding rbacv1.RoleBinding
		p.MustChange(yaml.UnmarshalStrict(document, &binding))
		binding.Namespace, binding.Subjects = namespace, managerOf(p)
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
		binding.Subjects = managerOf(p)
		p.MustChange(p.Client.Create(p.T.Context(), &binding))
	default:
		p.T.Fatalf("%s is no role", kind.Kind)
	}
}

// grantNamespaced grants what the installation for one namespace has, for these kinds only.
func grantNamespaced(p *operatortest.Place, kinds ...*declared.Kind) {
	p.T.Helper()
	const cluster = "config/namespaced/cluster/"
	grant(p, cluster+"finalizer_role.yaml", cluster+"finalizer_role_binding.yaml")
	for _, file := range []string{"config/rbac/role.yaml", cluster + "namespace_reader_role.yaml"} {
		bindThere(p, documentsOf(p.T, file)[0])
	}
	for _, kind := range kinds {
		grantKind(p, kind)
	}
}

// grantKind grants what a kind of fault needs: in the namespace, and on nodes.
func grantKind(p *operatortest.Place, kind *declared.Kind) {
	p.T.Helper()
	if len(kind.Grants) == 0 {
		return
	}
	folder := "config/rbac/faults/"
	if kind.Component != "" {
		folder = "config/components/" + kind.Component + "/"
	}
	for _, document := range documentsOf(p.T, folder+kind.Name()+".yaml") {
		switch isRole := bytes.Contains(document, []byte("kind: ClusterRole\nmetadata:\n")); {
		case bytes.Contains(document, []byte("name: "+kind.RoleName(true)+"\n")):
			grantOne(p, "", document)
		case isRole:
			bindThere(p, document)
		}
	}
}

// bindThere binds a ClusterRole in the namespace of the place only, as a Role with its rules: a binding to
// redquake-namespace-role grants all rules at once, and only where a controller adds them up.
func bindThere(p *operatortest.Place, document []byte) {
	p.T.Helper()
	var there rbacv1.ClusterRole
	p.MustChange(yaml.UnmarshalStrict(document, &there))
	meta := metav1.ObjectMeta{Namespace: p.Namespace, Name: there.Name}
	p.Create(&rbacv1.Role{ObjectMeta: meta, Rules: there.Rules})
	p.Create(&rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: there.Name},
		Subjects:   managerOf(p),
	})
}

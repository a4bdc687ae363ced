//go:build integration

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/doctor"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/internal/testing/await"
)

// An API server without an operator is not ready; the kinds and the policies are there, and an administrator may do
// everything.
func TestDoctor(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	report := p.doctor(p.env, cli.ExitFailed)
	for name, want := range map[string]doctor.Status{
		"kubernetes": doctor.OK, "kinds": doctor.OK, "admission policies": doctor.OK, "operator": doctor.Missing,
		"your rights: load tests": doctor.OK,
		"your rights: faults":     doctor.OK, "namespace": doctor.OK, "chaos mesh": doctor.Note,
	} {
		if got := checkNamed(t, report, name); got.Status != want {
			t.Errorf("%s is %+v, want %s", name, got, want)
		}
	}
	// tests of other packages may have nodes in the same API server
	if got := checkNamed(t, report, "nodes"); got.Status == doctor.Unknown {
		t.Errorf("%+v", got)
	}
	for _, f := range report.Faults {
		if absent := f.Engine == v1alpha1.EngineChaosMesh; absent != (f.Status == doctor.Missing) &&
			f.Type != v1alpha1.FaultVolumeAttachDelay {
			t.Errorf("%s %s is %s: %q", f.Engine, f.Type, f.Status, f.Detail)
		}
	}

	// A user who may create load tests and nothing else: what is missing is named, what cannot be asked is unknown.
	p.grant("jane", rbacv1.PolicyRule{
		APIGroups: []string{"redquake.dev"},
		Resources: []string{"redisloadtests"},
		Verbs:     []string{"create"},
	},
		rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"create"}})
	restricted := *p.config
	restricted.Impersonate.UserName = "jane"
	report = p.doctor([]string{"KUBECONFIG=" + p.kubeconfig(&restricted)}, 0)
	if c := checkNamed(t, report, "your rights: faults"); c.Status != doctor.Missing ||
		!strings.Contains(c.Detail, "you may not create redisfaults.redquake.dev in namespace "+p.namespace) {
		t.Errorf("%+v", c)
	}
	for _, name := range []string{"nodes", "operator", "policy"} {
		if c := checkNamed(t, report, name); c.Status != doctor.Unknown ||
			!strings.HasPrefix(c.Detail, "you may not ") && c.Name != "watched" {
			t.Errorf("%s: %+v", name, c)
		}
	}
	i := slices.IndexFunc(report.Faults, func(f doctor.Fault) bool {
		return f.Type == v1alpha1.FaultPodKill &&
			f.Engine == v1alpha1.EngineNative
	})
	if f := report.Faults[i]; f.Status != doctor.Missing || f.Detail[0] != "you may not delete pods" {
		t.Errorf("PodKill is %+v", f)
	}
	if code, out, stderr := runCommand(t, p.env, "doctor", "--fault", "PodKil"); code != cli.ExitError || out != "" ||
		!strings.Contains(stderr, `--fault: "PodKil" is none of`) {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

func (p *place) doctor(env []string, want int) *doctor.Report {
	p.Helper()
	code, out, stderr := runCommand(p.T, env, "doctor", "-o", "json")
	report := &doctor.Report{}
	if err := json.Unmarshal([]byte(out), report); err != nil || code != want {
		p.Fatalf("exit code %d, want %d, %v\n%s%s", code, want, err, out, stderr)
	}
	return report
}

func checkNamed(t *testing.T, r *doctor.Report, name string) doctor.Check {
	t.Helper()
	i := slices.IndexFunc(r.Checks, func(c doctor.Check) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("there is no check %s", name)
	}
	return r.Checks[i]
}

// grant lets a user do something in the place, and waits until the API server, which reads the rights from a cache,
// knows it.
func (p *place) grant(user string, rules ...rbacv1.PolicyRule) {
	p.Helper()
	meta := metav1.ObjectMeta{Namespace: p.namespace, Name: user}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: rules}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
	if err := p.Create(p.Context(), role); err != nil {
		p.Fatal(err)
	}
	if err := p.Create(p.Context(), binding); err != nil {
		p.Fatal(err)
	}
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			await.Until(p.T, fmt.Sprintf("%s may %s %v", user, verb, rule.Resources), func() error {
				review := &authorizationv1.LocalSubjectAccessReview{
					ObjectMeta: metav1.ObjectMeta{Namespace: p.namespace},
					Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
						Namespace: p.namespace, Verb: verb, Group: rule.APIGroups[0], Resource: rule.Resources[0],
					}},
				}
				if err := p.Create(p.Context(), review); err != nil {
					return err
				}
				return await.That(review.Status.Allowed, "not yet: %+v", review.Status)
			})
		}
	}
}

//go:build integration

package admission_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/declared"
	"github.com/redquake/redquake/internal/rights"
	"github.com/redquake/redquake/internal/testing/await"
)

// permissionCase is an object, by a change to the smallest one, and what its creator must be allowed.
type permissionCase struct {
	kind, spec string
	needs      []string
}

// What whoever creates an object must be allowed, as the refusal names it, beside kindCases.
var permissionCases = map[string]permissionCase{
	"OwnLoad": {
		"RedisFault", `{loadTestRef: null, target: {service: {name: redis}}, action: {type: PodKill}}`,
		[]string{"delete pods", "create jobs.batch"},
	},
	"FaultSecrets": {
		"RedisFault", `{target: ` + targetWithSecrets + `, action: {type: PodKill}}`,
		append([]string{"delete pods"}, secretsOfTarget...),
	},
	// The most checks that one request may take: the API server limits their cost.
	"MostChecks": {
		"RedisFault",
		`{loadTestRef: null, target: ` + targetWithSecrets + `, action: {type: VolumeAttachDelay}}`,
		append([]string{"delete pods", "create pods", "patch nodes", "create jobs.batch"}, secretsOfTarget...),
	},
	"SameSecret": {
		"RedisFault",
		`{target: {service: {name: redis}, auth: {passwordSecretRef: {name: one, key: password}}, tls: {caSecretRef: {name: one}}}}`,
		[]string{"delete pods", "get secret one"},
	},
	"LoadTest": {"RedisLoadTest", `{}`, []string{"create jobs.batch"}},
	"LoadTestSecrets": {
		"RedisLoadTest",
		`{target: ` + targetWithSecrets + `}`,
		append([]string{"create jobs.batch"}, secretsOfTarget...),
	},
	"CacheAside": {
		"RedisLoadTest",
		`{workload: {commands: null, cacheAside: {database: {driver: mysql, query: "SELECT ?", dsnSecretRef: {name: dsn, key: dsn}}}}}`,
		[]string{"create jobs.batch", "get secret dsn"},
	},
}

const targetWithSecrets = `{service: null, auth: {passwordSecretRef: {name: auth, key: password}},
  tls: {caSecretRef: {name: ca}, certSecretRef: {name: cert}},
  sentinel: {service: {name: sentinels}, auth: {passwordSecretRef: {name: s-auth, key: password}},
    tls: {caSecretRef: {name: s-ca}, certSecretRef: {name: s-cert}}}}`

var secretsOfTarget = []string{
	"get secret auth", "get secret ca", "get secret cert", "get secret s-auth",
	"get secret s-ca", "get secret s-cert",
}

// kindCases are a case for each kind of fault by what it declares, and one more for each that needs less with a
// setting. An action is the one of which actionChanges has a change; a kind without a member consists of its type.
func kindCases(t *testing.T) map[string]permissionCase {
	t.Helper()
	all := map[string]permissionCase{}
	for _, kind := range declared.All {
		name, action := string(kind.Type), map[string]any{"type": string(kind.Type)}
		if kind.Role != "" { // another engine has the type, too
			name += string(kind.Engine)
		}
		for _, change := range actionChanges {
			made := object(t, "RedisFault", "x", change.made).Object["spec"].(map[string]any)["action"].(map[string]any)
			if made["type"] == action["type"] && len(made) > len(action) {
				action = made
			}
		}
		if member, is := action["network"+strings.TrimPrefix(string(kind.Type), "Network")].(map[string]any); is &&
			kind.Engine == v1alpha1.EngineChaosMesh && member["operator"] != nil { // of engine Native only
			member = maps.Clone(member)
			delete(member, "operator")
			member["peers"] = []any{string(v1alpha1.PeerReplicas)}
			action = map[string]any{"type": string(kind.Type), "network" + strings.TrimPrefix(string(kind.Type), "Network"): member}
		}
		spec := func() string {
			return text(t, map[string]any{
				"engine": string(kind.Engine), "action": action, "allow": []any{string(v1alpha1.AllowDataLoss)},
			})
		}
		all[name] = permissionCase{"RedisFault", spec(), needsOf(&kind, nil)}
		for _, need := range kind.Needs {
			if need.Unless == nil {
				continue
			}
			if need.Unless.Value == "" {
				unstructured.RemoveNestedField(action, need.Unless.Field...)
			} else if err := unstructured.SetNestedField(action, need.Unless.Value, need.Unless.Field...); err != nil {
				t.Fatal(err)
			}
			all[name+strings.ReplaceAll(need.Unless.Word(), " ", "-")] = permissionCase{"RedisFault", spec(), needsOf(&kind, need.Unless)}
			break // TestOneExceptionForEachKind
		}
	}
	return all
}

// needsOf are what a kind with a setting needs, in the order in which the policy asks: that of all declarations.
func needsOf(kind *declared.Kind, setting *rights.Setting) []string {
	var asked, needs []string
	for _, k := range declared.All {
		for _, need := range k.Needs {
			asked = append(asked, need.String())
		}
	}
	for _, need := range kind.Needs {
		if need.Unless == nil || need.Unless != setting {
			needs = append(needs, need.String())
		}
	}
	slices.SortFunc(needs, func(a, b string) int { return slices.Index(asked, a) - slices.Index(asked, b) })
	return needs
}

// Whoever lacks a permission is refused with its name, and whoever has all is allowed.
func TestWhoMayBreakWhat(t *testing.T) {
	all := kindCases(t)
	maps.Copy(all, permissionCases)
	maps.Copy(all, experimentPermissionCases)
	maps.Copy(all, schedulePermissionCases())
	for title, test := range all {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			t.Run("without any", func(t *testing.T) {
				if len(test.needs) == 0 {
					userWith(t, test.kind, namespace).isAllowed(test.kind, test.spec)
					return
				}
				userWith(t, test.kind, namespace).isRefused(test.kind, test.spec, test.needs...)
			})
			for _, missing := range test.needs {
				if len(test.needs) == 1 {
					break // it is the same
				}
				if slices.Contains(test.needs, missing+everywhere) {
					continue // the other one includes it
				}
				t.Run("without "+missing, func(t *testing.T) {
					others := slices.DeleteFunc(slices.Clone(test.needs), func(n string) bool { return n == missing })
					userWith(t, test.kind, namespace, others...).isRefused(test.kind, test.spec, missing)
				})
			}
			t.Run("with all", func(t *testing.T) {
				userWith(t, test.kind, namespace, test.needs...).isAllowed(test.kind, test.spec)
			})
		})
	}
}

// Resources may be changed by whoever may resize the pod, or change its workload, as the cluster's edit may.
func TestEitherPermissionForResources(t *testing.T) {
	for _, one := range []string{"patch pods/resize", "patch statefulsets.apps"} {
		t.Run(one, func(t *testing.T) {
			userWith(t, "RedisFault", newNamespace(t), one).isAllowed("RedisFault", kindCases(t)["Resources"].spec)
		})
	}
}

// The rights in runner-rbac.yaml suffice for what the hook of the samples does, and for none that needs more.
func TestRunnerOfPipelines(t *testing.T) {
	namespace := newNamespace(t)
	var role rbacv1.Role
	for _, o := range filesOf(t, "samples/gitops")["runner-rbac.yaml"] {
		if o.GetKind() == "Role" {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
				t.Fatal(err)
			}
		}
	}
	u := userWith(t, "RedisFault", namespace)
	role.Namespace, role.Name = namespace, "redquake-runner"
	u.createAll(&role, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name, Namespace: namespace}, Subjects: u.subjects(),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
	})
	for _, o := range filesOf(t, "samples/gitops")["argocd-hook.yaml"] {
		o.SetNamespace(namespace)
		u.eventually("", func() error { return u.Create(u.Context(), o.DeepCopy(), client.DryRunAll) })
	}
	crash := kindCases(t)["ProcessCrash"]
	u.isRefused("RedisFault", crash.spec, crash.needs...)
}

// An update needs the permissions if it lets the object do more. To end, suspend or label one needs none.
func TestUpdatesThatNeedPermissions(t *testing.T) {
	tests := []struct {
		name, kind, made, change string
		needs                    []string
	}{
		{"abort", "RedisFault", `{}`, `{spec: {abort: true}}`, nil},
		{"suspend", "RedisFault", `{}`, `{spec: {suspend: true}}`, nil},
		{"ttl", "RedisFault", `{}`, `{spec: {ttlSecondsAfterFinished: 5}}`, nil},
		{"label", "RedisFault", `{}`, `{metadata: {labels: {a: b}}}`, nil},
		{"finalizer", "RedisFault", `{}`, `{metadata: {finalizers: [example.com/x]}}`, nil},
		{"type", "RedisFault", `{}`, `{spec: {action: {type: ProcessCrash}}}`, []string{"create pods/exec"}},
		{"select", "RedisFault", `{}`, `{spec: {select: {mode: All}}}`, []string{"delete pods"}},
		{"allow", "RedisFault", `{}`, `{spec: {allow: [AllCopies]}}`, []string{"delete pods"}},
		{"less", "RedisFault", `{allow: [AllCopies]}`, `{spec: {allow: null}}`, []string{"delete pods"}},
		{
			"target",
			"RedisFault",
			`{}`,
			`{spec: {target: {service: {name: redis}, auth: {passwordSecretRef: {name: other, key: x}}}}}`,
			[]string{"delete pods", "get secret other"},
		},
		{"resume", "RedisFault", `{suspend: true}`, `{spec: {suspend: false}}`, []string{"delete pods"}},
		{"abort-load", "RedisLoadTest", `{}`, `{spec: {abort: true}}`, nil},
		{"image", "RedisLoadTest", `{}`, `{spec: {pods: {image: evil}}}`, []string{"create jobs.batch"}},
		{"resume-load", "RedisLoadTest", `{suspend: true}`, `{spec: {suspend: false}}`, []string{"create jobs.batch"}},
		{"abort-experiment", "RedisExperiment", `{}`, `{spec: {abort: true}}`, nil},
		{"resume-experiment", "RedisExperiment", `{suspend: true}`, `{spec: {suspend: false}}`, ofExperiment()},
		{"history", "RedisExperiment", `{}`, `{spec: {loadTestsHistoryLimit: 0}}`, ofExperiment()},
		{"repeat", "RedisExperiment", `{faults: [` + killFault + `]}`, `{spec: {repeat: 50}}`, ofFaults("delete pods")},
		{"setting", "RedisExperiment", `{}`, `{spec: {matrix: [` + twoFsyncs + `]}}`, ofFaults("create pods/exec")},
		{
			"path", "RedisExperiment", `{}`, `{spec: {matrix: [{name: a, path: target, values: ["{}"]}]}}`,
			ofExperiment("get secrets"),
		},
		{"suspend-schedule", "RedisExperimentSchedule", `{}`, `{spec: {suspend: true}}`, nil},
		{"label-schedule", "RedisExperimentSchedule", `{}`, `{metadata: {labels: {a: b}}}`, nil},
		{
			"resume-schedule", "RedisExperimentSchedule", `{suspend: true}`, `{spec: {suspend: false}}`,
			ofSchedule(ofExperiment()...),
		},
		{
			"schedule", "RedisExperimentSchedule", `{schedule: "@yearly"}`, `{spec: {schedule: "@hourly"}}`,
			ofSchedule(ofExperiment()...),
		},
		{"kept", "RedisExperimentSchedule", `{}`, `{spec: {successfulRunsHistoryLimit: 0}}`, ofSchedule(ofExperiment()...)},
		{
			"no-deadline", "RedisExperimentSchedule", `{startingDeadlineSeconds: 60}`, `{spec: {startingDeadlineSeconds: null}}`,
			ofSchedule(ofExperiment()...),
		},
		{
			"notify", "RedisExperimentSchedule", `{}`, `{spec: {notify: {urlSecretRef: {name: chat, key: url}}}}`,
			ofSchedule(ofExperiment("get secret chat")...),
		},
		{
			"faults", "RedisExperimentSchedule", `{}`, `{spec: ` + inSchedule(`{faults: [`+killFault+`]}`) + `}`,
			ofSchedule(ofFaults("delete pods")...),
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			o := object(t, test.kind, test.name, test.made)
			o.SetNamespace(namespace)
			if err := strict.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			u := userWith(t, test.kind, namespace)
			asked := &unstructured.Unstructured{Object: merge(o.DeepCopy().Object, parse(t, test.change))}
			u.eventually(messageFor(u.name, namespace, test.kind, asked, test.needs...), func() error {
				changed := o.DeepCopy()
				return u.Patch(t.Context(), changed,
					client.RawPatch("application/merge-patch+json", []byte(text(t, parse(t, test.change)))))
			})
			if len(test.needs) == 0 {
				return
			}
			allowed := userWith(t, test.kind, namespace, test.needs...)
			allowed.eventually("", func() error {
				changed := o.DeepCopy()
				return allowed.Patch(t.Context(), changed,
					client.RawPatch("application/merge-patch+json", []byte(text(t, parse(t, test.change)))))
			})
		})
	}
}

// user is a user who may write the objects of one of the project's kinds in a namespace, and has the named permissions
// there.
type user struct {
	*testing.T
	client.Client
	name, namespace string
}

func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "permissions-"}}
	if err := strict.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

// userWith is a user who may write the objects of a kind, and has permissions.
func userWith(t *testing.T, kind, namespace string, permissions ...string) *user {
	t.Helper()
	return userNamed(t, fmt.Sprintf("user-%d", time.Now().UnixNano()), kind, namespace, permissions...)
}

func userNamed(t *testing.T, name, kind, namespace string, permissions ...string) *user {
	t.Helper()
	u := &user{T: t, name: name, namespace: namespace}
	rules := []rbacv1.PolicyRule{
		{
			APIGroups: []string{v1alpha1.GroupVersion.Group},
			Resources: []string{strings.ToLower(kind) + "s"},
			Verbs:     []string{"*"},
		},
	}
	for _, permission := range permissions {
		permission, _, _ = strings.Cut(permission, " or ")
		if anywhere(permission) {
			u.grantOnCluster(permission)
			continue
		}
		rules = append(rules, ruleOf(permission))
	}
	meta := metav1.ObjectMeta{Name: u.name, Namespace: namespace}
	u.createAll(&rbacv1.Role{ObjectMeta: meta, Rules: rules}, &rbacv1.RoleBinding{
		ObjectMeta: meta,
		Subjects:   u.subjects(),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: u.name},
	})
	config := rest.CopyConfig(server)
	config.Impersonate = rest.ImpersonationConfig{UserName: u.name}
	c, err := client.New(config, client.Options{Scheme: strict.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	u.Client = client.WithFieldValidation(c, metav1.FieldValidationStrict)
	return u
}

// ruleOf is the rule of a permission such as "patch statefulsets.apps" or "get secret redis".
func ruleOf(permission string) rbacv1.PolicyRule {
	verb, resource, _ := strings.Cut(permission, " ")
	if name, isSecret := strings.CutPrefix(resource, "secret "); isSecret {
		return rbacv1.PolicyRule{
			APIGroups:     []string{""},
			Resources:     []string{"secrets"},
			ResourceNames: []string{name},
			Verbs:         []string{verb},
		}
	}
	resource, group, _ := strings.Cut(resource, ".")
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}}
}

func (u *user) subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: u.name}}
}

const everywhere = " in all namespaces"

// anywhere reports whether a permission is one of the cluster, or of all its namespaces.
func anywhere(permission string) bool {
	return permission == rights.PatchNodes.String() || strings.HasSuffix(permission, everywhere)
}

// grantOnCluster gives the user a permission on what is cluster-scoped, or in all namespaces.
func (u *user) grantOnCluster(permission string) {
	meta := metav1.ObjectMeta{Name: u.name}
	role := &rbacv1.ClusterRole{
		ObjectMeta: meta,
		Rules:      []rbacv1.PolicyRule{ruleOf(strings.TrimSuffix(permission, everywhere))},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		Subjects:   u.subjects(),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: u.name},
	}
	u.createAll(role, binding)
	after := context.WithoutCancel(u.Context())
	u.Cleanup(func() {
		for _, o := range []client.Object{role, binding} {
			if err := strict.Delete(after, o); err != nil {
				u.Error(err)
			}
		}
	})
}

func (u *user) createAll(objects ...client.Object) {
	u.Helper()
	for _, o := range objects {
		if err := strict.Create(u.Context(), o); err != nil {
			u.Fatal(err)
		}
	}
}

// isRefused: the message names the first of what is missing.
func (u *user) isRefused(kind, spec string, missing ...string) {
	u.Helper()
	u.create(kind, spec, missing...)
}

func (u *user) isAllowed(kind, spec string) {
	u.Helper()
	u.create(kind, spec)
}

func (u *user) create(kind, spec string, missing ...string) {
	u.Helper()
	o := object(u.T, kind, "permissions", spec)
	o.SetNamespace(u.namespace)
	u.eventually(messageFor(u.name, u.namespace, kind, o, missing...), func() error {
		return u.Create(u.Context(), o.DeepCopy(), client.DryRunAll)
	})
}

// eventually repeats a request until it is refused with a message, or allowed where that is empty: the API server
// learns of roles and policies a moment after they were created.
func (u *user) eventually(want string, request func() error) {
	u.Helper()
	await.Until(u.T, fmt.Sprintf("the answer %q", want), func() error {
		err := request()
		return await.That(want == "" && err == nil ||
			want != "" && apierrors.IsForbidden(err) && strings.HasSuffix(err.Error(), want), "the error %v", err)
	})
}

// messageFor is the end of the message with which the policy refuses an object for the lack of a permission; "" if
// nothing is missing.
func messageFor(user, namespace, kind string, o *unstructured.Unstructured, missing ...string) string {
	if len(missing) == 0 {
		return ""
	}
	need := missing[0]
	subject, jobs := "a load test", "for the load pods"
	switch kind {
	case "RedisFault":
		typ, _, _ := unstructured.NestedString(o.Object, "spec", "action", "type")
		subject, jobs = "type "+typ, "for the probe load that a fault without loadTestRef creates"
	case "RedisExperiment", "RedisExperimentSchedule":
		subject = "" // a field: TestRefusalsOfExperimentsNameTheField
	}
	if !anywhere(need) {
		need += " in namespace " + namespace
	}
	if strings.HasPrefix(need, "create jobs") {
		need += " (" + jobs + ")"
	}
	return fmt.Sprintf("%s needs the permission to %s, which user %s does not have", subject, need, user)
}

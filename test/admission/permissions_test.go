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
	"github.com/redquake/redquake/internal/testing/await"
)

// permissionCase is an object, by a change to the smallest one, and what its creator must be allowed.
type permissionCase struct {
	kind, spec string
	needs      []string
}

// What whoever creates an object must be allowed, as the refusal names it. TestEveryKindHasPermissions demands a case for each type and engine.
var permissionCases = map[string]permissionCase{
	"PodKill":               {"RedisFault", `{action: {type: PodKill}}`, []string{"delete pods"}},
	"ProcessCrash":          {"RedisFault", `{action: {type: ProcessCrash}}`, []string{"create pods/exec"}},
	"Failover":              {"RedisFault", `{action: {type: Failover}}`, []string{"create pods/exec"}},
	"VolumeAttachDelay":     {"RedisFault", `{action: {type: VolumeAttachDelay}}`, []string{"delete pods", "create pods", "patch nodes"}},
	"VolumeAttachDelayNone": {"RedisFault", `{action: {type: VolumeAttachDelay, volumeAttachDelay: {keepAway: None}}}`, []string{"delete pods", "create pods"}},
	"IOThreads":             {"RedisFault", `{action: {type: IOThreads, ioThreads: {count: 2}}}`, []string{"delete pods", "create pods/exec", "patch statefulsets.apps"}},
	"IOThreadsLive":         {"RedisFault", `{action: {type: IOThreads, ioThreads: {count: 2, method: Live}}}`, []string{"create pods/exec"}},
	"Config":                {"RedisFault", `{action: {type: Config, config: {parameters: {hz: "10"}}}}`, []string{"create pods/exec"}},
	"External":              {"RedisFault", `{action: {type: External}}`, nil},
	"ReplicaScale":          {"RedisFault", `{action: {type: ReplicaScale, replicaScale: {by: 1}}}`, []string{"create pods/exec", "patch statefulsets.apps"}},
	"Resources":             {"RedisFault", `{action: {type: Resources, resources: {cpu: 100m}}}`, []string{"patch pods/resize or patch statefulsets.apps"}},
	"PodTemplate":           {"RedisFault", `{action: {type: PodTemplate, podTemplate: {patch: {spec: {priorityClassName: high}}}}}`, []string{"delete pods", "patch statefulsets.apps"}},
	"Hang":                  {"RedisFault", `{action: {type: Hang}}`, []string{"create pods/exec"}},
	"ClientPause":           {"RedisFault", `{action: {type: ClientPause}}`, []string{"create pods/exec"}},
	"ClientKill":            {"RedisFault", `{action: {type: ClientKill}}`, []string{"create pods/exec"}},
	"BackgroundSave":        {"RedisFault", `{action: {type: BackgroundSave}}`, []string{"create pods/exec"}},
	"NodeLoss":              {"RedisFault", `{action: {type: NodeLoss, nodeLoss: {node: a}}}`, []string{"delete pods", "patch nodes"}},
	"PodKillChaosMesh":      {"RedisFault", `{engine: ChaosMesh, action: {type: PodKill}}`, []string{"create podchaos.chaos-mesh.org"}},
	"NetworkDelay":          {"RedisFault", `{engine: ChaosMesh, action: {type: NetworkDelay, networkDelay: {latency: 10ms}}}`, []string{"create networkchaos.chaos-mesh.org"}},
	"NetworkLoss":           {"RedisFault", `{engine: ChaosMesh, action: {type: NetworkLoss, networkLoss: {loss: "10%"}}}`, []string{"create networkchaos.chaos-mesh.org"}},
	"NetworkPartition":      {"RedisFault", `{engine: ChaosMesh, action: {type: NetworkPartition, networkPartition: {from: Replicas}}}`, []string{"create networkchaos.chaos-mesh.org"}},
	"DiskDelay":             {"RedisFault", `{engine: ChaosMesh, action: {type: DiskDelay, diskDelay: {delay: 10ms}}}`, []string{"create iochaos.chaos-mesh.org"}},
	"CPUStress":             {"RedisFault", `{engine: ChaosMesh, action: {type: CPUStress}}`, []string{"create stresschaos.chaos-mesh.org"}},
	"ClockSkew":             {"RedisFault", `{engine: ChaosMesh, action: {type: ClockSkew, clockSkew: {offset: 1m}}}`, []string{"create timechaos.chaos-mesh.org"}},
	"OwnLoad": {"RedisFault", `{loadTestRef: null, target: {service: {name: redis}}, action: {type: PodKill}}`,
		[]string{"delete pods", "create jobs.batch"}},
	"FaultSecrets": {"RedisFault", `{target: ` + targetWithSecrets + `, action: {type: PodKill}}`,
		append([]string{"delete pods"}, secretsOfTarget...)},
	// The most checks that one request may take: the API server limits their cost.
	"MostChecks": {"RedisFault", `{loadTestRef: null, target: ` + targetWithSecrets + `, action: {type: VolumeAttachDelay}}`,
		append([]string{"delete pods", "create pods", "patch nodes", "create jobs.batch"}, secretsOfTarget...)},
	"SameSecret": {"RedisFault", `{target: {service: {name: redis}, auth: {passwordSecretRef: {name: one, key: password}}, tls: {caSecretRef: {name: one}}}}`,
		[]string{"delete pods", "get secret one"}},
	"LoadTest":        {"RedisLoadTest", `{}`, []string{"create jobs.batch"}},
	"LoadTestSecrets": {"RedisLoadTest", `{target: ` + targetWithSecrets + `}`, append([]string{"create jobs.batch"}, secretsOfTarget...)},
	"CacheAside": {"RedisLoadTest", `{workload: {commands: null, cacheAside: {database: {driver: mysql, query: "SELECT ?", dsnSecretRef: {name: dsn, key: dsn}}}}}`,
		[]string{"create jobs.batch", "get secret dsn"}},
}

const targetWithSecrets = `{service: null, auth: {passwordSecretRef: {name: auth, key: password}}, tls: {caSecretRef: {name: ca}, certSecretRef: {name: cert}},
  sentinel: {service: {name: sentinels}, auth: {passwordSecretRef: {name: s-auth, key: password}}, tls: {caSecretRef: {name: s-ca}, certSecretRef: {name: s-cert}}}}`

var secretsOfTarget = []string{"get secret auth", "get secret ca", "get secret cert", "get secret s-auth", "get secret s-ca", "get secret s-cert"}

// Whoever lacks a permission is refused with its name, and whoever has all is allowed.
func TestWhoMayBreakWhat(t *testing.T) {
	all := maps.Clone(permissionCases)
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
			userWith(t, "RedisFault", newNamespace(t), one).isAllowed("RedisFault", permissionCases["Resources"].spec)
		})
	}
}

// The rights in runner-rbac.yaml suffice for what the hook of the samples does, and for none that needs more.
func TestRunnerOfPipelines(t *testing.T) {
	namespace := newNamespace(t)
	var role rbacv1.Role
	for _, o := range manifests(t, "samples/gitops")["runner-rbac.yaml"] {
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
	for _, o := range manifests(t, "samples/gitops")["argocd-hook.yaml"] {
		o.SetNamespace(namespace)
		u.eventually("", func() error { return u.Create(u.Context(), o.DeepCopy(), client.DryRunAll) })
	}
	u.isRefused("RedisFault", permissionCases["ProcessCrash"].spec, permissionCases["ProcessCrash"].needs...)
}

func TestEveryKindHasPermissions(t *testing.T) {
	tested := map[string]bool{}
	for _, test := range permissionCases {
		typ, _, _ := unstructured.NestedString(object(t, test.kind, "x", test.spec).Object, "spec", "action", "type")
		tested[`"`+typ+`"`] = true
	}
	for _, typ := range schemaOf(t, "redquake.dev_redisfaults.yaml", "action", "type").Enum {
		if !tested[string(typ.Raw)] {
			t.Errorf("permissionCases has no case for type %s", typ.Raw)
		}
	}
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
		{"target", "RedisFault", `{}`, `{spec: {target: {service: {name: redis}, auth: {passwordSecretRef: {name: other, key: x}}}}}`, []string{"delete pods", "get secret other"}},
		{"resume", "RedisFault", `{suspend: true}`, `{spec: {suspend: false}}`, []string{"delete pods"}},
		{"abort-load", "RedisLoadTest", `{}`, `{spec: {abort: true}}`, nil},
		{"image", "RedisLoadTest", `{}`, `{spec: {pods: {image: evil}}}`, []string{"create jobs.batch"}},
		{"resume-load", "RedisLoadTest", `{suspend: true}`, `{spec: {suspend: false}}`, []string{"create jobs.batch"}},
		{"abort-experiment", "RedisExperiment", `{}`, `{spec: {abort: true}}`, nil},
		{"resume-experiment", "RedisExperiment", `{suspend: true}`, `{spec: {suspend: false}}`, ofExperiment()},
		{"history", "RedisExperiment", `{}`, `{spec: {loadTestsHistoryLimit: 0}}`, ofExperiment()},
		{"repeat", "RedisExperiment", `{faults: [` + killFault + `]}`, `{spec: {repeat: 50}}`, ofFaults("delete pods")},
		{"setting", "RedisExperiment", `{}`, `{spec: {matrix: [` + twoFsyncs + `]}}`, ofFaults("create pods/exec")},
		{"path", "RedisExperiment", `{}`, `{spec: {matrix: [{name: a, path: target, values: ["{}"]}]}}`, ofExperiment("get secrets")},
		{"suspend-schedule", "RedisExperimentSchedule", `{}`, `{spec: {suspend: true}}`, nil},
		{"label-schedule", "RedisExperimentSchedule", `{}`, `{metadata: {labels: {a: b}}}`, nil},
		{"resume-schedule", "RedisExperimentSchedule", `{suspend: true}`, `{spec: {suspend: false}}`, ofSchedule(ofExperiment()...)},
		{"schedule", "RedisExperimentSchedule", `{schedule: "@yearly"}`, `{spec: {schedule: "@hourly"}}`, ofSchedule(ofExperiment()...)},
		{"kept", "RedisExperimentSchedule", `{}`, `{spec: {successfulRunsHistoryLimit: 0}}`, ofSchedule(ofExperiment()...)},
		{"no-deadline", "RedisExperimentSchedule", `{startingDeadlineSeconds: 60}`, `{spec: {startingDeadlineSeconds: null}}`, ofSchedule(ofExperiment()...)},
		{"notify", "RedisExperimentSchedule", `{}`, `{spec: {notify: {urlSecretRef: {name: chat, key: url}}}}`, ofSchedule(ofExperiment("get secret chat")...)},
		{"faults", "RedisExperimentSchedule", `{}`, `{spec: ` + inSchedule(`{faults: [`+killFault+`]}`) + `}`, ofSchedule(ofFaults("delete pods")...)},
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
				return u.Patch(t.Context(), changed, client.RawPatch("application/merge-patch+json", []byte(text(t, parse(t, test.change)))))
			})
			if len(test.needs) == 0 {
				return
			}
			allowed := userWith(t, test.kind, namespace, test.needs...)
			allowed.eventually("", func() error {
				changed := o.DeepCopy()
				return allowed.Patch(t.Context(), changed, client.RawPatch("application/merge-patch+json", []byte(text(t, parse(t, test.change)))))
			})
		})
	}
}

// user is a user who may write the objects of one of the project's kinds in a namespace, and has the named permissions there.
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
	rules := []rbacv1.PolicyRule{{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{strings.ToLower(kind) + "s"}, Verbs: []string{"*"}}}
	for _, permission := range permissions {
		permission, _, _ = strings.Cut(permission, " or ")
		if permission == "patch nodes" {
			u.grantOnNodes()
			continue
		}
		rules = append(rules, ruleOf(permission))
	}
	meta := metav1.ObjectMeta{Name: u.name, Namespace: namespace}
	u.createAll(&rbacv1.Role{ObjectMeta: meta, Rules: rules}, &rbacv1.RoleBinding{
		ObjectMeta: meta, Subjects: u.subjects(), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: u.name},
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
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{name}, Verbs: []string{verb}}
	}
	resource, group, _ := strings.Cut(resource, ".")
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}}
}

func (u *user) subjects() []rbacv1.Subject {
	return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: u.name}}
}

// grantOnNodes lets the user patch nodes, which are cluster-scoped.
func (u *user) grantOnNodes() {
	meta := metav1.ObjectMeta{Name: u.name}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"patch"}}}}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: u.subjects(), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: u.name}}
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

// eventually repeats a request until it is refused with a message, or allowed where that is empty: the API server learns of roles and policies a
// moment after they were created.
func (u *user) eventually(want string, request func() error) {
	u.Helper()
	await.Until(u.T, fmt.Sprintf("the answer %q", want), func() error {
		err := request()
		return await.That(want == "" && err == nil || want != "" && apierrors.IsForbidden(err) && strings.HasSuffix(err.Error(), want), "the error %v", err)
	})
}

// messageFor is the end of the message with which the policy refuses an object for the lack of a permission; "" if nothing is missing.
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
	if need != "patch nodes" {
		need += " in namespace " + namespace
	}
	if strings.HasPrefix(need, "create jobs") {
		need += " (" + jobs + ")"
	}
	return fmt.Sprintf("%s needs the permission to %s, which user %s does not have", subject, need, user)
}

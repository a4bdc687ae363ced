//go:build integration

package operator

import (
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/declared"
	"github.com/redquake/redquake/internal/rights"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/stage"
)

// onePerKind are the first for each type by each engine.
func onePerKind(kinds []stage.Kind) []stage.Kind {
	var all []stage.Kind
	known := map[string]bool{}
	for _, kind := range kinds {
		if name := stage.OperationOf(kind).Name(); !known[name] {
			known[name] = true
			all = append(all, kind)
		}
	}
	return all
}

// withoutNodes is a fault that needs less than its kind does.
var withoutNodes = stage.Kind{
	// its replacement may come to the same node
	Name:  "VolumeAttachDelay without a taint",
	Fault: v1alpha1.FaultVolumeAttachDelay,
	Fades: true,
	Scene: stage.FleetOf(1, stage.OnVolume),
	Spec: func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
		spec.Action.VolumeAttachDelay, spec.Duration = &v1alpha1.VolumeAttachDelay{
			KeepAway: v1alpha1.KeepAwayNone,
		}, operatortest.Length(3*time.Second)
	},
}

// Every kind of fault is injected and reverted by an operator that has the Roles of one namespace and of this kind, and
// no other rights.
func TestEachKindWithItsRightsOnly(t *testing.T) {
	t.Parallel()
	for _, kind := range slices.Concat(onePerKind(stage.Kinds), stage.KindsThatNeed(stage.NeedsPower), []stage.Kind{withoutNodes}) {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			p := operatortest.PlaceOn(t, kind.On)
			restrict(p)
			grantNamespaced(p, stage.OperationOf(kind))
			set := kind.Scene(p)
			withdrawUnneeded(p, stage.OperationOf(kind).Rights(&faultOf(p, kind).Spec.Action))
			operatortest.StartKubelet(p, nil)
			operatortest.StartOperator(p, operatortest.Spy{})
			p.Create(operatortest.NewLoadTest("run", "", func(test *v1alpha1.RedisLoadTest) {
				test.Spec.Target, test.Spec.Client.Connections = set.Target, 2
				test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(50)), Duration: operatortest.Length(time.Hour)}
			}))
			p.TestHasReason("run", time.Minute, v1alpha1.ReasonRunning)
			stage.Settles(p, set)
			before := set.Shows()
			f := breakWith(p, kind)
			for _, problem := range kind.ProblemsIn(f) {
				t.Error(problem)
			}
			var differs []string
			p.Until("everything is as before", 30*time.Second, func() bool {
				differs = stage.Differences(before, set.Shows())
				return len(differs) == 0
			}, func() string { return strings.Join(differs, "; ") })
		})
	}
}

// breakWith runs a fault of a kind, and returns it when it is over.
func breakWith(p *operatortest.Place, kind stage.Kind) *v1alpha1.RedisFault {
	p.T.Helper()
	p.Create(faultOf(p, kind))
	stage := stage.Stage{Place: p}
	p.Until("the fault is over", time.Minute, func() bool { return stage.PushOn("break") }, func() string {
		f := p.Fault("break")
		return operatortest.Where(f.Status.Conditions)
	})
	return p.Fault("break")
}

func faultOf(p *operatortest.Place, kind stage.Kind) *v1alpha1.RedisFault {
	return operatortest.NewFault("break", "run", kind.Fault, func(f *v1alpha1.RedisFault) {
		f.Spec.Trigger.After, f.Spec.RecoveryDeadline = operatortest.Length(0), *operatortest.Length(time.Second)
		kind.Spec(p, &f.Spec)
	})
}

// withdrawUnneeded removes what the kind of a fault may do in the cluster from the place's roles, unless the fault
// needs it.
func withdrawUnneeded(p *operatortest.Place, needs []rights.Right) {
	p.T.Helper()
	var roles rbacv1.ClusterRoleList
	p.MustChange(p.Client.List(p.T.Context(), &roles))
	for i := range roles.Items {
		role := &roles.Items[i]
		if !strings.HasPrefix(role.Name, "cluster-") || !strings.HasSuffix(role.Name, "-role-"+p.Namespace) {
			continue
		}
		before := len(role.Rules)
		role.Rules = slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
			return !slices.ContainsFunc(needs, func(r rights.Right) bool {
				return r.Cluster &&
					slices.Contains(rule.Resources, r.Resource)
			})
		})
		if len(role.Rules) < before {
			p.MustChange(p.Client.Update(p.T.Context(), role))
		}
	}
}

// A fault for which a right is missing fails before anything is broken, and names the right and the role. A dry run
// says the same.
func TestMissingRight(t *testing.T) {
	t.Parallel()
	for _, kind := range onePerKind(stage.Kinds) {
		operation := stage.OperationOf(kind)
		if len(operation.Grants) == 0 || !kind.Quick && kind.Fault != v1alpha1.FaultResources { // one of each mechanism
			continue
		}
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			p := operatortest.PlaceOn(t, kind.On)
			restrict(p)
			grantNamespaced(p)
			set := kind.Scene(p)
			operatortest.StartKubelet(p, nil)
			operatortest.StartOperator(p, operatortest.Spy{})
			p.Create(operatortest.NewLoadTest("run", "", func(test *v1alpha1.RedisLoadTest) {
				test.Spec.Target, test.Spec.Load.Duration = set.Target, operatortest.Length(time.Hour)
			}))
			dry := faultOf(p, kind)
			dry.Name, dry.Spec.DryRun = "dry", true
			p.Create(dry)
			p.Create(faultOf(p, kind))
			for _, name := range []string{"dry", "break"} {
				isNotPermitted(p, name, operation, false)
			}
		})
	}
}

// isNotPermitted waits for the end of a fault that begins nothing, as it lacks all rights of its kind.
func isNotPermitted(p *operatortest.Place, name string, operation *declared.Kind, cluster bool) {
	p.T.Helper()
	f := p.FaultEnds(name, time.Minute)
	if operatortest.Reason(f.Status.Conditions) != v1alpha1.ReasonNotPermitted &&
		!strings.Contains(operatortest.Where(f.Status.Conditions), v1alpha1.ReasonNotPermitted) {
		p.T.Errorf("%s: %s", name, operatortest.Where(f.Status.Conditions))
	}
	if len(f.Status.Targets) > 0 || f.Status.InjectedAt != nil {
		p.T.Errorf("%s: targets %+v", name, f.Status.Targets)
	}
	text := operatortest.Where(f.Status.Conditions)
	if !strings.Contains(text, rights.Prefix+operation.RoleName(cluster)) {
		p.T.Errorf("%s does not name the role %s: %s", name, operation.RoleName(cluster), text)
	}
	for _, right := range operation.Rights(&f.Spec.Action) {
		if right.Cluster == cluster && !strings.Contains(text, right.String()) {
			p.T.Errorf("%s does not name %q: %s", name, right, text)
		}
	}
}

// Without its right on nodes a fault begins nothing either.
func TestMissingRightOnNodes(t *testing.T) {
	t.Parallel()
	at := slices.IndexFunc(stage.Kinds, func(k stage.Kind) bool { return k.Fault == v1alpha1.FaultNodeLoss })
	kind := stage.Kinds[at]
	operation := stage.OperationOf(kind)
	p := operatortest.NewPlace(t)
	restrict(p)
	grantNamespaced(p)
	bindThere(p, documentsOf(p.T, "config/components/node-faults/"+operation.Name()+".yaml")[0])
	set := kind.Scene(p)
	operatortest.StartKubelet(p, nil)
	operatortest.StartOperator(p, operatortest.Spy{})
	p.Create(operatortest.NewLoadTest("run", "", func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Target, test.Spec.Load.Duration = set.Target, operatortest.Length(time.Hour)
	}))
	p.Create(faultOf(p, kind))
	isNotPermitted(p, "break", operation, true)
}

// An operator with the Roles of one namespace runs a load with a fault there. Objects elsewhere are left alone.
func TestOneNamespace(t *testing.T) {
	t.Parallel()
	p, elsewhere := operatortest.NewPlace(t), operatortest.NewPlace(t)
	restrict(p)
	grantNamespaced(p, declared.Of(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}}))
	redis, others := operatortest.StartRedis(p), operatortest.StartRedis(elsewhere)
	operatortest.StartKubelet(p, nil)
	operatortest.StartKubelet(elsewhere, nil)
	elsewhere.Create(operatortest.NewLoadTest("run", others.Address(), func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Load.Duration = operatortest.Length(time.Hour)
	}))
	elsewhere.Create(operatortest.NewFault("kill", "run", v1alpha1.FaultPodKill, nil))
	test, fault := elsewhere.LoadTest("run"), elsewhere.Fault("kill")
	operatortest.StartOperator(p, operatortest.Spy{})
	p.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(200)), Duration: operatortest.Length(time.Hour)}
	}))
	p.Create(operatortest.NewFault("kill", "run", v1alpha1.FaultPodKill, nil))
	f := p.FaultEnds("kill", 2*time.Minute)
	if f.Status.Effect != v1alpha1.EffectConfirmed || f.Status.Impact == nil || len(redis.PodsDeleted()) != 1 {
		t.Errorf("%s: effect %s, impact %+v, %d pods deleted", operatortest.Where(f.Status.Conditions), f.Status.Effect,
			f.Status.Impact,
			len(redis.PodsDeleted()))
	}
	if ended := abortedRun(p, "run"); ended.Status.Summary == nil || len(ended.Status.Faults) != 1 {
		t.Errorf("the load: %s, faults %+v", operatortest.Where(ended.Status.Conditions), ended.Status.Faults)
	}
	if now := elsewhere.LoadTest("run"); now.ResourceVersion != test.ResourceVersion {
		t.Errorf("the load test elsewhere was changed: %+v", now.Status)
	}
	if now := elsewhere.Fault("kill"); now.ResourceVersion != fault.ResourceVersion {
		t.Errorf("the fault elsewhere was changed: %+v", now.Status)
	}
	if n := len(others.PodsDeleted()); n != 0 {
		t.Errorf("%d pods were deleted elsewhere", n)
	}
}

// What the deletion of a namespace removes first may be the rights of the operator there. The faults are let go of
// nevertheless, and Redis is reverted as far as that needs no right.
func TestNamespaceIsDeleted(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		name := "the operator runs on"
		if restarts {
			name = "the operator starts afterwards"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := operatortest.NewPlace(t)
			restrict(p)
			grantNamespaced(p)
			redis := operatortest.StartRedis(p)
			operatortest.StartKubelet(p, nil)
			o := operatortest.StartOperator(p, operatortest.Spy{})
			p.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
				test.Spec.Load.Duration = operatortest.Length(
					time.Hour)
			}))
			p.Create(operatortest.HzFault(nil))
			f := p.FaultHasReason("break", time.Minute, v1alpha1.ReasonActive)
			if restarts {
				o.Stop()
			}
			loseRoles(p)
			p.Until("the operator has lost its rights", time.Minute, func() bool { return !mayDelete(p, "jobs") },
				func() string {
					return ""
				})
			p.MustChange(p.Client.Delete(t.Context(), f))
			p.MustChange(p.Client.Delete(t.Context(), p.LoadTest("run")))
			if restarts {
				operatortest.StartOperator(p, operatortest.Spy{})
			}
			since := time.Now()
			p.Until("both are removed", 100*time.Second, func() bool {
				return !p.Read(&v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "break"}}) &&
					!p.Read(operatortest.NamedTest("run"))
			}, func() string {
				f := p.Fault("break")
				return operatortest.Where(f.Status.Conditions)
			})
			t.Logf("removed after %s; hz is %s", time.Since(since).Round(100*time.Millisecond), redis.Hz(""))
			if hz := redis.Hz(""); !restarts && hz != "10" { // another process would have to find the pod first
				t.Errorf("hz is still %s", hz)
			}
		})
	}
}

// mayDelete asks whether the operator may delete objects of a resource of the group batch.
func mayDelete(p *operatortest.Place, resource string) bool {
	p.T.Helper()
	operator, err := client.New(p.Config, client.Options{Scheme: p.Client.Scheme()})
	p.MustChange(err)
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb:      "delete",
			Group:     "batch",
			Resource:  resource,
			Namespace: p.Namespace,
		},
	}}
	p.MustChange(operator.Create(p.T.Context(), review))
	return review.Status.Allowed
}

// loseRoles removes the Roles and bindings of the namespace, as its deletion does.
func loseRoles(p *operatortest.Place) {
	p.T.Helper()
	for _, object := range []client.Object{&rbacv1.RoleBinding{}, &rbacv1.Role{}} {
		p.MustChange(p.Client.DeleteAllOf(p.T.Context(), object, client.InNamespace(p.Namespace)))
	}
}

//go:build integration

package controllers

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
)

// onePerKind are the first for each type by each engine.
func onePerKind(kinds []crashKind) []crashKind {
	var all []crashKind
	known := map[string]bool{}
	for _, kind := range kinds {
		if name := operationOf(kind).Name(); !known[name] {
			known[name] = true
			all = append(all, kind)
		}
	}
	return all
}

func operationOf(kind crashKind) *declared.Kind {
	spec := v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: kind.fault}}
	if kind.needs == needsMesh {
		spec.Engine = v1alpha1.EngineChaosMesh
	}
	return declared.Of(&spec)
}

// withoutNodes is a fault that needs less than its kind does.
var withoutNodes = crashKind{
	// its replacement may come to the same node
	name:  "VolumeAttachDelay without a taint",
	fault: v1alpha1.FaultVolumeAttachDelay,
	fades: true,
	scene: fleetOf(1, onVolume),
	spec: func(_ *place, spec *v1alpha1.RedisFaultSpec) {
		spec.Action.VolumeAttachDelay, spec.Duration = &v1alpha1.VolumeAttachDelay{
			KeepAway: v1alpha1.KeepAwayNone,
		}, length(3*time.Second)
	},
}

// Every kind of fault is injected and reverted by an operator that has the Roles of one namespace and of this kind, and
// no other rights.
func TestEachKindWithItsRightsOnly(t *testing.T) {
	t.Parallel()
	for _, kind := range append(onePerKind(crashKinds), withoutNodes) {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			p := placeOn(t, kind.on)
			p.restrict()
			p.grantNamespaced(operationOf(kind))
			set := kind.scene(p)
			p.withdrawUnneeded(operationOf(kind).Rights(&faultOf(p, kind).Spec.Action))
			startKubelet(p, nil)
			startOperator(p, spy{})
			p.create(newLoadTest("run", "", func(test *v1alpha1.RedisLoadTest) {
				test.Spec.Target, test.Spec.Client.Connections = set.target, 2
				test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(50)), Duration: length(time.Hour)}
			}))
			p.testHasReason("run", time.Minute, v1alpha1.ReasonRunning)
			p.settles(set)
			before := set.shows()
			f := p.breakWith(kind)
			for _, problem := range kind.problemsIn(f) {
				t.Error(problem)
			}
			var differs []string
			p.until("everything is as before", 30*time.Second, func() bool {
				differs = differences(before, set.shows())
				return len(differs) == 0
			}, func() string { return strings.Join(differs, "; ") })
		})
	}
}

// breakWith runs a fault of a kind, and returns it when it is over.
func (p *place) breakWith(kind crashKind) *v1alpha1.RedisFault {
	p.t.Helper()
	p.create(faultOf(p, kind))
	stage := crashStage{place: p}
	p.until("the fault is over", time.Minute, func() bool { return stage.pushOn("break") }, func() string {
		f := p.fault("break")
		return where(f.Status.Conditions)
	})
	return p.fault("break")
}

func faultOf(p *place, kind crashKind) *v1alpha1.RedisFault {
	return newFault("break", "run", kind.fault, func(f *v1alpha1.RedisFault) {
		f.Spec.Trigger.After, f.Spec.RecoveryDeadline = length(0), *length(time.Second)
		kind.spec(p, &f.Spec)
	})
}

// withdrawUnneeded removes what the kind of a fault may do in the cluster from the place's roles, unless the fault
// needs it.
func (p *place) withdrawUnneeded(needs []rights.Right) {
	p.t.Helper()
	var roles rbacv1.ClusterRoleList
	p.mustChange(p.client.List(p.t.Context(), &roles))
	for i := range roles.Items {
		role := &roles.Items[i]
		if !strings.HasPrefix(role.Name, "cluster-") || !strings.HasSuffix(role.Name, "-role-"+p.namespace) {
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
			p.mustChange(p.client.Update(p.t.Context(), role))
		}
	}
}

// A fault for which a right is missing fails before anything is broken, and names the right and the role. A dry run
// says the same.
func TestMissingRight(t *testing.T) {
	t.Parallel()
	for _, kind := range onePerKind(crashKinds) {
		operation := operationOf(kind)
		if len(operation.Grants) == 0 || !kind.quick && kind.fault != v1alpha1.FaultResources { // one of each mechanism
			continue
		}
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			p := placeOn(t, kind.on)
			p.restrict()
			p.grantNamespaced()
			set := kind.scene(p)
			startKubelet(p, nil)
			startOperator(p, spy{})
			p.create(newLoadTest("run", "", func(test *v1alpha1.RedisLoadTest) {
				test.Spec.Target, test.Spec.Load.Duration = set.target, length(time.Hour)
			}))
			dry := faultOf(p, kind)
			dry.Name, dry.Spec.DryRun = "dry", true
			p.create(dry)
			p.create(faultOf(p, kind))
			for _, name := range []string{"dry", "break"} {
				p.isNotPermitted(name, operation, false)
			}
		})
	}
}

// isNotPermitted waits for the end of a fault that begins nothing, as it lacks all rights of its kind.
func (p *place) isNotPermitted(name string, operation *declared.Kind, cluster bool) {
	p.t.Helper()
	f := p.faultEnds(name, time.Minute)
	if reason(f.Status.Conditions) != v1alpha1.ReasonNotPermitted &&
		!strings.Contains(where(f.Status.Conditions), v1alpha1.ReasonNotPermitted) {
		p.t.Errorf("%s: %s", name, where(f.Status.Conditions))
	}
	if len(f.Status.Targets) > 0 || f.Status.InjectedAt != nil {
		p.t.Errorf("%s: targets %+v", name, f.Status.Targets)
	}
	text := where(f.Status.Conditions)
	if !strings.Contains(text, rights.Prefix+operation.RoleName(cluster)) {
		p.t.Errorf("%s does not name the role %s: %s", name, operation.RoleName(cluster), text)
	}
	for _, right := range operation.Rights(&f.Spec.Action) {
		if right.Cluster == cluster && !strings.Contains(text, right.String()) {
			p.t.Errorf("%s does not name %q: %s", name, right, text)
		}
	}
}

// Without its right on nodes a fault begins nothing either.
func TestMissingRightOnNodes(t *testing.T) {
	t.Parallel()
	at := slices.IndexFunc(crashKinds, func(k crashKind) bool { return k.fault == v1alpha1.FaultNodeLoss })
	kind := crashKinds[at]
	operation := operationOf(kind)
	p := newPlace(t)
	p.restrict()
	p.grantNamespaced()
	p.grant(rolesOfNamespace + operation.Name() + ".yaml")
	set := kind.scene(p)
	startKubelet(p, nil)
	startOperator(p, spy{})
	p.create(newLoadTest("run", "", func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Target, test.Spec.Load.Duration = set.target, length(time.Hour)
	}))
	p.create(faultOf(p, kind))
	p.isNotPermitted("break", operation, true)
}

// An operator with the Roles of one namespace runs a load with a fault there. Objects elsewhere are left alone.
func TestOneNamespace(t *testing.T) {
	t.Parallel()
	p, elsewhere := newPlace(t), newPlace(t)
	p.restrict()
	p.grantNamespaced(declared.Of(&v1alpha1.RedisFaultSpec{Action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}}))
	redis, others := startRedis(p), startRedis(elsewhere)
	startKubelet(p, nil)
	startKubelet(elsewhere, nil)
	elsewhere.create(newLoadTest("run", others.address(), func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Load.Duration = length(time.Hour)
	}))
	elsewhere.create(newFault("kill", "run", v1alpha1.FaultPodKill, nil))
	test, fault := elsewhere.loadTest("run"), elsewhere.fault("kill")
	startOperator(p, spy{})
	p.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(200)), Duration: length(time.Hour)}
	}))
	p.create(newFault("kill", "run", v1alpha1.FaultPodKill, nil))
	f := p.faultEnds("kill", 2*time.Minute)
	if f.Status.Effect != v1alpha1.EffectConfirmed || f.Status.Impact == nil || len(redis.podsDeleted()) != 1 {
		t.Errorf("%s: effect %s, impact %+v, %d pods deleted", where(f.Status.Conditions), f.Status.Effect, f.Status.Impact,
			len(redis.podsDeleted()))
	}
	if ended := p.ended("run"); ended.Status.Summary == nil || len(ended.Status.Faults) != 1 {
		t.Errorf("the load: %s, faults %+v", where(ended.Status.Conditions), ended.Status.Faults)
	}
	if now := elsewhere.loadTest("run"); now.ResourceVersion != test.ResourceVersion {
		t.Errorf("the load test elsewhere was changed: %+v", now.Status)
	}
	if now := elsewhere.fault("kill"); now.ResourceVersion != fault.ResourceVersion {
		t.Errorf("the fault elsewhere was changed: %+v", now.Status)
	}
	if n := len(others.podsDeleted()); n != 0 {
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
			p := newPlace(t)
			p.restrict()
			p.grantNamespaced()
			redis := startRedis(p)
			startKubelet(p, nil)
			o := startOperator(p, spy{})
			p.create(newLoadTest("run", redis.address(), func(test *v1alpha1.RedisLoadTest) {
				test.Spec.Load.Duration = length(
					time.Hour)
			}))
			p.create(hzFault(nil))
			f := p.faultHasReason("break", time.Minute, v1alpha1.ReasonActive)
			if restarts {
				o.stop()
			}
			p.loseRoles()
			p.until("the operator has lost its rights", time.Minute, func() bool { return !p.mayDelete("jobs") }, func() string {
				return ""
			})
			p.mustChange(p.client.Delete(t.Context(), f))
			p.mustChange(p.client.Delete(t.Context(), p.loadTest("run")))
			if restarts {
				startOperator(p, spy{})
			}
			since := time.Now()
			p.until("both are removed", 100*time.Second, func() bool {
				return !p.read(&v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: "break"}}) && !p.read(namedTest("run"))
			}, func() string {
				f := p.fault("break")
				return where(f.Status.Conditions)
			})
			t.Logf("removed after %s; hz is %s", time.Since(since).Round(100*time.Millisecond), redis.hz(""))
			if hz := redis.hz(""); !restarts && hz != "10" { // another process would have to find the pod first
				t.Errorf("hz is still %s", hz)
			}
		})
	}
}

// mayDelete asks whether the operator may delete objects of a resource of the group batch.
func (p *place) mayDelete(resource string) bool {
	p.t.Helper()
	operator, err := client.New(p.config, client.Options{Scheme: p.client.Scheme()})
	p.mustChange(err)
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb:      "delete",
			Group:     "batch",
			Resource:  resource,
			Namespace: p.namespace,
		},
	}}
	p.mustChange(operator.Create(p.t.Context(), review))
	return review.Status.Allowed
}

// loseRoles removes the Roles and bindings of the namespace, as its deletion does.
func (p *place) loseRoles() {
	p.t.Helper()
	for _, object := range []client.Object{&rbacv1.RoleBinding{}, &rbacv1.Role{}} {
		p.mustChange(p.client.DeleteAllOf(p.t.Context(), object, client.InNamespace(p.namespace)))
	}
}

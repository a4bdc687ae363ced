//go:build integration

package controllers

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// secretScene is a Redis, or what else has a login, and the kinds of faults that act there one after the other.
type secretScene struct {
	name  string
	on    func(*testing.T) *place // as in crashKind
	run   func(*place, []crashKind)
	kinds []crashKind
}

// secretScenes are those of TestPasswordsAreFoundNowhere. All kinds that need a server alone are in the first ones,
// which share them; the others have a kind for each type.
var secretScenes = []secretScene{
	{name: "refused settings", run: loginAndBreak, kinds: refusedSettings},
	{name: "server/0", run: loginAndBreak, kinds: everyThird(0, kindsThatNeed(needsServer))},
	{name: "server/1", run: loginAndBreak, kinds: everyThird(1, kindsThatNeed(needsServer))},
	{name: "server/2", run: loginAndBreak, kinds: everyThird(2, kindsThatNeed(needsServer))},
	{name: "Sentinel", run: loginAtSentinels, kinds: onePerKind(kindsThatNeed(needsSentinels))},
	{
		name:  "workload",
		run:   loginAtFleet(2, nil),
		kinds: slices.Concat(refusedTemplates, onePerKind(kindsThatNeed(needsWorkload, needsScaling, needsReplication))),
	},
	{name: "nodes", run: loginAtFleet(1, onVolume), kinds: onePerKind(kindsThatNeed(needsNodes))},
	{name: "Chaos Mesh", on: newMeshPlace, run: loginByMesh, kinds: onePerKind(kindsThatNeed(needsMesh))},
	{name: "refused", run: loginInVain},
	{name: "experiments", run: loginInExperiments},
	{name: "databases", run: loginAtDatabases},
	{name: "stop conditions", run: loginAtPrometheus},
	{name: "notifications", run: notifyInVain},
}

// everyThird is a third of the kinds, from the first, the second or the third one on.
func everyThird(from int, kinds []crashKind) []crashKind {
	var some []crashKind
	for i := from; i < len(kinds); i += 3 {
		some = append(some, kinds[i])
	}
	return some
}

// refusedSettings are kinds that the server of loginAndBreak refuses.
var refusedSettings = []crashKind{
	{name: "an unknown setting", fault: v1alpha1.FaultConfig, spec: func(_ *place, spec *v1alpha1.RedisFaultSpec) {
		spec.Action.Config = &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"no-such": "50"}}
	}},
	{name: "IOThreads, live", fault: v1alpha1.FaultIOThreads, spec: func(_ *place, spec *v1alpha1.RedisFaultSpec) {
		spec.Action.IOThreads = &v1alpha1.IOThreads{Count: 2, Method: v1alpha1.ApplyLive}
	}},
}

// refusedTemplates are patches that hold a secret, and that no template takes.
var refusedTemplates = []crashKind{
	refusedTemplate("of a value and a source",
		`{"containers": [{"name": "redis", "env": [{"name": "A", "value": "`+plantedInPatch+
			`", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}]}`),
	refusedTemplate("of an item without a name",
		`{"containers": [{"name": "redis", "env": [{"value": "`+plantedInPatch+`"}]}]}`),
	refusedTemplate("of another type", `{"containers": [{"name": "redis", "args": "`+plantedInPatch+`"}]}`),
	refusedTemplate("of an unknown field",
		`{"containers": [{"name": "redis", "env": [{"name": "A", "valu": "`+plantedInPatch+`"}]}]}`),
	refusedTemplate("of a name", `{"priorityClassName": "`+plantedInPatch+`!"}`),
}

func refusedTemplate(name, spec string) crashKind {
	return crashKind{
		name:  "a template " + name,
		fault: v1alpha1.FaultPodTemplate,
		spec:  func(_ *place, s *v1alpha1.RedisFaultSpec) { s.Action.PodTemplate = templatePatch(spec) },
	}
}

// plant creates a Secret.
func (p *place) plant(name string, content map[string]string) {
	p.t.Helper()
	p.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{plantedLabel: "yes"}},
		StringData: content,
	})
}

func login(key string) *v1alpha1.RedisAuth {
	return &v1alpha1.RedisAuth{PasswordSecretRef: v1alpha1.SecretKeyReference{Name: "auth", Key: key}}
}

// loadFor starts a load on a target that asks for a password.
func (p *place) loadFor(target *v1alpha1.RedisTarget) {
	p.t.Helper()
	p.create(newLoadTest("run", "", func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Target = *target
		test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(20)), Duration: length(time.Hour)}
		test.Spec.Verify = &v1alpha1.LoadVerify{AcknowledgedWrites: true, Share: "10%"}
	}))
	p.testHasReason("run", time.Minute, v1alpha1.ReasonRunning)
}

// breakAll injects kinds one after the other, plans a fault of each, and waits until the load has ended.
func (p *place) breakAll(kinds []crashKind) {
	p.t.Helper()
	for i, kind := range kinds {
		p.breakOnce(fmt.Sprintf("fault-%d", i), kind)
	}
	planOf := func(i int) string { return fmt.Sprintf("plan-%d", i) }
	for i, kind := range kinds {
		plan := p.unguarded(planOf(i), kind)
		plan.Spec.DryRun = true
		p.create(plan)
	}
	for i := range kinds {
		p.t.Logf("plan of %s: %s", kinds[i].name, where(p.faultEnds(planOf(i), time.Minute).Status.Conditions))
	}
	p.ended("run")
}

// breakOnce waits until a fault was reverted or has failed.
func (p *place) breakOnce(name string, kind crashKind) {
	p.t.Helper()
	p.create(p.unguarded(name, kind))
	var f *v1alpha1.RedisFault
	p.until(name+" of type "+string(kind.fault)+" is over", 2*time.Minute, func() bool {
		f = p.fault(name)
		return f.Status.RevertedAt != nil || meta.IsStatusConditionTrue(f.Status.Conditions, v1alpha1.ConditionFailed)
	}, func() string { return where(f.Status.Conditions) })
	p.t.Logf("%s: %s", kind.name, where(f.Status.Conditions))
	p.mustChange(change(p, &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(f *v1alpha1.RedisFault) {
		f.Spec.Abort = true
	}))
	p.faultEnds(name, time.Minute)
}

// unguarded is a fault of a kind that no guard refuses before its settings are looked at.
func (p *place) unguarded(name string, kind crashKind) *v1alpha1.RedisFault {
	p.t.Helper()
	return newFault(name, "run", kind.fault, func(f *v1alpha1.RedisFault) {
		f.Spec.Trigger.After = length(0)
		f.Spec.Allow = []v1alpha1.Allowance{v1alpha1.AllowTooFewCores, v1alpha1.AllowDataLoss}
		kind.spec(p, &f.Spec)
	})
}

// loginAndBreak is the scene of one server.
func loginAndBreak(p *place, kinds []crashKind) {
	target := redisPods(startRedis(p, "--requirepass", planted+"-right", "--enable-debug-command", "yes").address())
	target.Auth = login("password")
	p.loadFor(&target)
	p.breakAll(kinds)
}

// loginInExperiments is the scene of experiments: on a setting of a server with a password, and on the password itself,
// of which one value is wrong.
func loginInExperiments(p *place, _ []crashKind) {
	target := redisPods(startRedis(p, "--requirepass", planted+"-right").address())
	target.Auth = login("password")
	for name, matrix := range map[string]v1alpha1.ExperimentParameter{
		"setting": {
			Name: "hz",
			Settings: []v1alpha1.ExperimentSetting{
				{Name: "as-is"},
				{Name: "50", Config: map[string]v1alpha1.ParameterValue{"hz": "50"}},
			},
		},
		"password": {
			Name:   "key",
			Path:   "target.auth.passwordSecretRef.key",
			Values: []intstr.IntOrString{intstr.FromString("password"), intstr.FromString("wrong")},
		},
	} {
		p.create(newExperiment(name, "", func(e *v1alpha1.RedisExperiment) {
			e.Spec.Template.Spec.Target = *target.DeepCopy()
			e.Spec.Matrix, e.Spec.Repeat = []v1alpha1.ExperimentParameter{matrix}, 1
		}))
		e := p.experimentEnds(name, 5*time.Minute)
		p.t.Logf("%s: %s; %+v", name, where(e.Status.Conditions), e.Status.Cells)
		if e.Status.Progress == nil || e.Status.Progress.Finished != 2 {
			p.t.Errorf("%s: %s", name, where(e.Status.Conditions))
		}
	}
}

// loginAtFleet is the scene of a StatefulSet whose servers have a user with a password. The fleet itself asks them as
// the default user.
func loginAtFleet(replicas int32, change func(*fleet, *appsv1.StatefulSet)) func(*place, []crashKind) {
	return func(p *place, kinds []crashKind) {
		f := startFleet(p, replicas, func(f *fleet, set *appsv1.StatefulSet) {
			f.options = []string{"--user", "app", "on", ">" + planted + "-right", "~*", "&*", "+@all"}
			if change != nil {
				change(f, set)
			}
		})
		target := redisPods(f.address(0))
		target.Auth = login("password")
		target.Auth.Username = "app"
		p.loadFor(&target)
		p.breakAll(kinds)
	}
}

// loginByMesh is the scene of one server that Chaos Mesh can reach.
func loginByMesh(p *place, kinds []crashKind) {
	startMesh(p)
	target := redisPods(startRedis(p, "--requirepass", planted+"-right").address())
	target.Auth = login("password")
	p.loadFor(&target)
	p.breakAll(kinds)
}

// loginAtSentinels is the scene of a primary and sentinels that have a password of their own.
func loginAtSentinels(p *place, kinds []crashKind) {
	set := redistest.NewSentinel(p.t, 1, redistest.SentinelOptions{
		Options:          redistest.Options{Password: planted + "-right"},
		SentinelPassword: planted + "-sentinel",
	})
	p.podsOf(set.Servers())
	target := redisPods()
	target.Auth = login("password")
	target.Sentinel = &v1alpha1.SentinelTarget{
		Addresses:  set.SentinelAddresses(),
		MasterName: redistest.MasterName,
		Auth:       login("sentinel"),
	}
	p.loadFor(&target)
	p.breakAll(kinds)
}

// loginInVain has load tests and faults that cannot log in: a wrong password, a server without AUTH, TLS with one that
// has none.
func loginInVain(p *place, _ []crashKind) {
	redis := startRedis(p, "--requirepass", planted+"-right")
	renamed := redistest.Start(p.t, `rename-command AUTH ""`)
	tests := map[string]struct {
		address, key string
		tls          *v1alpha1.RedisTLS
	}{
		"wrong":   {redis.address(), "wrong", nil},
		"renamed": {renamed.Address(), "password", nil},
		"tls":     {redis.address(), "password", &v1alpha1.RedisTLS{}},
	}
	for name, test := range tests {
		target := func(target *v1alpha1.RedisTarget) { target.Auth, target.TLS = login(test.key), test.tls }
		p.create(newLoadTest(name, test.address, func(t *v1alpha1.RedisLoadTest) { target(&t.Spec.Target) }))
		p.create(newFault(name, name, v1alpha1.FaultConfig, func(f *v1alpha1.RedisFault) {
			f.Spec.Action.Config = &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"hz": "50"}}
		}))
	}
	for name := range tests {
		test := p.testEnds(name, time.Minute)
		p.t.Logf("%s: %s", name, where(test.Status.Conditions))
		p.faultEnds(name, time.Minute)
	}
}

// loginAtDatabases has load tests whose data source name is wrong in different ways.
func loginAtDatabases(p *place, _ []crashKind) {
	redis := startRedis(p)
	names := map[string]struct {
		driver v1alpha1.DatabaseDriver
		dsn    string
	}{
		"unreachable": {
			v1alpha1.DatabasePostgres,
			"postgres://" + planted + "-user:" + planted + "@127.0.0.1:1/shop?sslmode=disable&application_name=" + planted +
				"-name",
		},
		"malformed": {
			v1alpha1.DatabasePostgres,
			"postgres://127.0.0.1:1/shop?sslmode=disable&password=" + planted + "&connect_timeout=" + planted,
		},
		"no-at": {v1alpha1.DatabaseMySQL, planted + "-user:" + planted + "(127.0.0.1:1)/shop?charset=" + planted},
	}
	for name, test := range names {
		p.plant("dsn-"+name, map[string]string{"dsn": test.dsn})
		p.create(newLoadTest(name, redis.address(), func(t *v1alpha1.RedisLoadTest) {
			t.Spec.Pods.StartDeadline = *length(40 * time.Second) // what is to fail must have begun by then
			t.Spec.Workload = v1alpha1.Workload{CacheAside: &v1alpha1.CacheAsideWorkload{Database: v1alpha1.WorkloadDatabase{
				Driver: test.driver, DSNSecretRef: v1alpha1.SecretKeyReference{Name: "dsn-" + name, Key: "dsn"}, Query: "SELECT 1",
			}}}
		}))
	}
	for name := range names {
		test := p.testEnds(name, p.patience)
		p.t.Logf("%s: %s", name, where(test.Status.Conditions))
		if got := reason(test.Status.Conditions); got != string(plan.BackendUnreachable) {
			p.t.Errorf("%s: %s", name, where(test.Status.Conditions))
		}
	}
}

// loginAtPrometheus has faults whose stop conditions are evaluated by servers that send the login back: before the
// injection, after it, by a redirect.
func loginAtPrometheus(p *place, _ []crashKind) {
	redis := startRedis(p)
	p.plant("token", map[string]string{"token": planted + "-token"})
	p.plant("basic", map[string]string{"username": planted + "-user", "password": planted + "-password"})
	target := redisPods(redis.address())
	p.loadFor(&target)
	for name, answer := range map[string]http.HandlerFunc{
		"echo": func(w http.ResponseWriter, r *http.Request) {
			user, password, _ := r.BasicAuth()
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"status":"error","errorType":"bad_data","error":"who is %s? %s %s"}`, user, password,
				r.Header.Get("Authorization"))
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://"+strings.ReplaceAll(r.Header.Get("Authorization"), " ", "@")+":port/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		},
		"later": func(w http.ResponseWriter, r *http.Request) {
			value := "0"
			if redis.hz("") == "50" {
				value = r.Header.Get("Authorization")
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"status":"success","data":{"resultType":"scalar","result":[1,"%s"]}}`, value)
		},
	} {
		server := httptest.NewServer(answer)
		p.t.Cleanup(server.Close)
		for _, secret := range []string{"token", "basic"} {
			f := hzFor(name+"-"+secret, "50", time.Minute)
			f.Spec.Trigger.After = length(0)
			f.Spec.StopIf = &v1alpha1.StopConditions{Queries: []v1alpha1.StopQuery{{
				Name: "slo", Query: "up", Above: new("1"), Every: metav1.Duration{Duration: time.Second},
				Prometheus: v1alpha1.PrometheusServer{URL: server.URL, AuthSecretRef: &v1alpha1.SecretReference{Name: secret}},
			}}}
			p.create(f)
			p.until(f.Name+" is stopped", time.Minute, func() bool { f = p.fault(f.Name); return f.Status.Breach != nil },
				func() string { return where(f.Status.Conditions) })
			p.mustChange(change(p, f, func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
			f = p.faultEnds(f.Name, time.Minute)
			p.t.Logf("%s: %s", f.Name, f.Status.Breach.Message)
		}
	}
	p.ended("run")
}

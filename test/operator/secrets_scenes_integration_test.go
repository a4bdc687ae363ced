//go:build integration

package operator

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
	"github.com/redquake/redquake/internal/testing/meshplace"
	"github.com/redquake/redquake/internal/testing/operatortest"
	"github.com/redquake/redquake/internal/testing/redistest"
	"github.com/redquake/redquake/internal/testing/stage"
)

// secretScene is a Redis, or what else has a login, and the kinds of faults that act there one after the other.
type secretScene struct {
	name  string
	on    func(*testing.T) *operatortest.Place // as in Kind
	run   func(*operatortest.Place, []stage.Kind)
	kinds []stage.Kind
}

// secretScenes are those of TestPasswordsAreFoundNowhere. All kinds that need a server alone are in the first ones,
// which share them; the others have a kind for each type.
var secretScenes = []secretScene{
	{name: "refused settings", run: loginAndBreak, kinds: refusedSettings},
	{name: "server/0", run: loginAndBreak, kinds: everyThird(0, stage.KindsThatNeed(stage.NeedsServer))},
	{name: "server/1", run: loginAndBreak, kinds: everyThird(1, stage.KindsThatNeed(stage.NeedsServer))},
	{name: "server/2", run: loginAndBreak, kinds: everyThird(2, stage.KindsThatNeed(stage.NeedsServer))},
	{name: "Sentinel", run: loginAtSentinels, kinds: onePerKind(stage.KindsThatNeed(stage.NeedsSentinels))},
	{
		name: "workload",
		run:  loginAtFleet(2, nil),
		kinds: slices.Concat(refusedTemplates,
			onePerKind(stage.KindsThatNeed(stage.NeedsWorkload, stage.NeedsScaling, stage.NeedsReplication))),
	},
	{name: "nodes", run: loginAtFleet(1, stage.OnClaims), kinds: onePerKind(stage.KindsThatNeed(stage.NeedsNodes))},
	{name: "operator", run: loginAtFleet(1, stage.Operated), kinds: onePerKind(stage.KindsThatNeed(stage.NeedsOperator))},
	{
		name:  "Chaos Mesh",
		on:    meshplace.New,
		run:   loginByMesh,
		kinds: onePerKind(stage.KindsThatNeed(stage.NeedsMesh)),
	},
	{
		name:  "network",
		on:    stage.NewNetworkPlace,
		run:   loginInNetwork,
		kinds: onePerKind(stage.KindsThatNeed(stage.NeedsNetwork)),
	},
	{name: "disk", on: stage.NewNetworkPlace, run: loginOnDisk, kinds: onePerKind(stage.KindsThatNeed(stage.NeedsDisk))},
	{name: "refused", run: loginInVain},
	{name: "experiments", run: loginInExperiments},
	{name: "databases", run: loginAtDatabases},
	{name: "stop conditions", run: loginAtPrometheus},
	{name: "notifications", run: notifyInVain},
}

// everyThird is a third of the kinds, from the first, the second or the third one on.
func everyThird(from int, kinds []stage.Kind) []stage.Kind {
	var some []stage.Kind
	for i := from; i < len(kinds); i += 3 {
		some = append(some, kinds[i])
	}
	return some
}

// refusedSettings are kinds that the server of loginAndBreak refuses.
var refusedSettings = []stage.Kind{
	{
		Name:  "an unknown setting",
		Fault: v1alpha1.FaultConfig,
		Spec: func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.Config = &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"no-such": "50"}}
		},
	},
	{
		Name:  "IOThreads, live",
		Fault: v1alpha1.FaultIOThreads,
		Spec: func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
			spec.Action.IOThreads = &v1alpha1.IOThreads{Count: 2, Method: v1alpha1.ApplyLive}
		},
	},
}

// refusedTemplates are patches that hold a secret, and that no template takes.
var refusedTemplates = []stage.Kind{
	refusedTemplate("of a value and a source",
		`{"containers": [{"name": "redis", "env": [{"name": "A", "value": "`+stage.PlantedInPatch+
			`", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}]}`),
	refusedTemplate("of an item without a name",
		`{"containers": [{"name": "redis", "env": [{"value": "`+stage.PlantedInPatch+`"}]}]}`),
	refusedTemplate("of another type", `{"containers": [{"name": "redis", "args": "`+stage.PlantedInPatch+`"}]}`),
	refusedTemplate("of an unknown field",
		`{"containers": [{"name": "redis", "env": [{"name": "A", "valu": "`+stage.PlantedInPatch+`"}]}]}`),
	refusedTemplate("of a name", `{"priorityClassName": "`+stage.PlantedInPatch+`!"}`),
}

func refusedTemplate(name, spec string) stage.Kind {
	return stage.Kind{
		Name:  "a template " + name,
		Fault: v1alpha1.FaultPodTemplate,
		Spec: func(_ *operatortest.Place, s *v1alpha1.RedisFaultSpec) {
			s.Action.PodTemplate = stage.TemplatePatch(spec)
		},
	}
}

// plant creates a Secret.
func plant(p *operatortest.Place, name string, content map[string]string) {
	p.T.Helper()
	p.Create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{stage.PlantedLabel: "yes"}},
		StringData: content,
	})
}

func login(key string) *v1alpha1.RedisAuth {
	return &v1alpha1.RedisAuth{PasswordSecretRef: v1alpha1.SecretKeyReference{Name: "auth", Key: key}}
}

// loadFor starts a load on a target that asks for a password.
func loadFor(p *operatortest.Place, target *v1alpha1.RedisTarget) {
	p.T.Helper()
	p.Create(operatortest.NewLoadTest("run", "", func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Target = *target
		test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(20)), Duration: operatortest.Length(time.Hour)}
		test.Spec.Verify = &v1alpha1.LoadVerify{AcknowledgedWrites: true, Share: "10%"}
	}))
	p.TestHasReason("run", time.Minute, v1alpha1.ReasonRunning)
}

// breakAll injects kinds one after the other, plans a fault of each, and waits until the load has ended.
func breakAll(p *operatortest.Place, kinds []stage.Kind) {
	p.T.Helper()
	for i, kind := range kinds {
		breakOnce(p, fmt.Sprintf("fault-%d", i), kind)
	}
	planOf := func(i int) string { return fmt.Sprintf("plan-%d", i) }
	for i, kind := range kinds {
		plan := unguarded(p, planOf(i), kind)
		plan.Spec.DryRun = true
		p.Create(plan)
	}
	for i := range kinds {
		p.T.Logf("plan of %s: %s", kinds[i].Name, operatortest.Where(p.FaultEnds(planOf(i), time.Minute).Status.Conditions))
	}
	abortedRun(p, "run")
}

// breakOnce waits until a fault was reverted or has failed.
func breakOnce(p *operatortest.Place, name string, kind stage.Kind) {
	p.T.Helper()
	p.Create(unguarded(p, name, kind))
	var f *v1alpha1.RedisFault
	p.Until(name+" of type "+string(kind.Fault)+" is over", 2*time.Minute, func() bool {
		f = p.Fault(name)
		return f.Status.RevertedAt != nil || meta.IsStatusConditionTrue(f.Status.Conditions, v1alpha1.ConditionFailed)
	}, func() string { return operatortest.Where(f.Status.Conditions) })
	p.T.Logf("%s: %s", kind.Name, operatortest.Where(f.Status.Conditions))
	p.MustChange(operatortest.Change(p, &v1alpha1.RedisFault{ObjectMeta: metav1.ObjectMeta{Name: name}},
		func(f *v1alpha1.RedisFault) {
			f.Spec.Abort = true
		}))
	p.FaultEnds(name, time.Minute)
}

// unguarded is a fault of a kind that no guard refuses before its settings are looked at.
func unguarded(p *operatortest.Place, name string, kind stage.Kind) *v1alpha1.RedisFault {
	p.T.Helper()
	return operatortest.NewFault(name, "run", kind.Fault, func(f *v1alpha1.RedisFault) {
		f.Spec.Trigger.After = operatortest.Length(0)
		f.Spec.Allow = []v1alpha1.Allowance{v1alpha1.AllowTooFewCores, v1alpha1.AllowDataLoss}
		kind.Spec(p, &f.Spec)
	})
}

// loginAndBreak is the scene of one server.
func loginAndBreak(p *operatortest.Place, kinds []stage.Kind) {
	target := stage.RedisPods(
		operatortest.StartRedis(p, "--requirepass", stage.Planted+"-right", "--enable-debug-command", "yes").Address())
	target.Auth = login("password")
	loadFor(p, &target)
	breakAll(p, kinds)
}

// loginInExperiments is the scene of experiments: on a setting of a server with a password, and on the password itself,
// of which one value is wrong.
func loginInExperiments(p *operatortest.Place, _ []stage.Kind) {
	target := stage.RedisPods(operatortest.StartRedis(p, "--requirepass", stage.Planted+"-right").Address())
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
		p.Create(operatortest.NewExperiment(name, "", func(e *v1alpha1.RedisExperiment) {
			e.Spec.Template.Spec.Target = *target.DeepCopy()
			e.Spec.Matrix, e.Spec.Repeat = []v1alpha1.ExperimentParameter{matrix}, 1
		}))
		e := p.ExperimentEnds(name, 5*time.Minute)
		p.T.Logf("%s: %s; %+v", name, operatortest.Where(e.Status.Conditions), e.Status.Cells)
		if e.Status.Progress == nil || e.Status.Progress.Finished != 2 {
			p.T.Errorf("%s: %s", name, operatortest.Where(e.Status.Conditions))
		}
	}
}

// loginAtFleet is the scene of a StatefulSet whose servers have a user with a password. The fleet itself asks them as
// the default user.
func loginAtFleet(
	replicas int32, change func(*stage.Fleet, *appsv1.StatefulSet),
) func(*operatortest.Place, []stage.Kind) {
	return func(p *operatortest.Place, kinds []stage.Kind) {
		f := stage.StartFleet(p, replicas, func(f *stage.Fleet, set *appsv1.StatefulSet) {
			f.Options = []string{"--user", "app", "on", ">" + stage.Planted + "-right", "~*", "&*", "+@all"}
			if change != nil {
				change(f, set)
			}
		})
		target := stage.RedisPods(f.Address(0))
		target.Auth = login("password")
		target.Auth.Username = "app"
		loadFor(p, &target)
		breakAll(p, kinds)
	}
}

// loginByMesh is the scene of one server that Chaos Mesh can reach.
func loginByMesh(p *operatortest.Place, kinds []stage.Kind) {
	meshplace.Start(p)
	target := stage.RedisPods(operatortest.StartRedis(p, "--requirepass", stage.Planted+"-right").Address())
	target.Auth = login("password")
	loadFor(p, &target)
	breakAll(p, kinds)
}

// loginInNetwork is the scene of a server in whose pod packets can be dropped.
func loginInNetwork(p *operatortest.Place, kinds []stage.Kind) {
	stage.StartEphemeral(p)
	loginAndBreak(p, kinds)
}

// loginOnDisk is the scene of a server whose volume can be filled.
func loginOnDisk(p *operatortest.Place, kinds []stage.Kind) {
	stage.StartEphemeral(p)
	loginAtFleet(1, stage.Stored)(p, kinds)
}

// loginAtSentinels is the scene of a primary and sentinels that have a password of their own.
func loginAtSentinels(p *operatortest.Place, kinds []stage.Kind) {
	set := redistest.NewSentinel(p.T, 1, redistest.SentinelOptions{
		Options:          redistest.Options{Password: stage.Planted + "-right"},
		SentinelPassword: stage.Planted + "-sentinel",
	})
	stage.PodsOf(p, set.Servers())
	target := stage.RedisPods()
	target.Auth = login("password")
	target.Sentinel = &v1alpha1.SentinelTarget{
		Addresses:  set.SentinelAddresses(),
		MasterName: redistest.MasterName,
		Auth:       login("sentinel"),
	}
	loadFor(p, &target)
	breakAll(p, kinds)
}

// loginInVain has load tests and faults that cannot log in: a wrong password, a server without AUTH, TLS with one that
// has none.
func loginInVain(p *operatortest.Place, _ []stage.Kind) {
	redis := operatortest.StartRedis(p, "--requirepass", stage.Planted+"-right")
	renamed := redistest.Start(p.T, `rename-command AUTH ""`)
	tests := map[string]struct {
		address, key string
		tls          *v1alpha1.RedisTLS
	}{
		"wrong":   {redis.Address(), "wrong", nil},
		"renamed": {renamed.Address(), "password", nil},
		"tls":     {redis.Address(), "password", &v1alpha1.RedisTLS{}},
	}
	for name, test := range tests {
		target := func(target *v1alpha1.RedisTarget) { target.Auth, target.TLS = login(test.key), test.tls }
		p.Create(operatortest.NewLoadTest(name, test.address, func(t *v1alpha1.RedisLoadTest) { target(&t.Spec.Target) }))
		p.Create(operatortest.NewFault(name, name, v1alpha1.FaultConfig, func(f *v1alpha1.RedisFault) {
			f.Spec.Action.Config = &v1alpha1.Config{Parameters: map[string]v1alpha1.ParameterValue{"hz": "50"}}
		}))
	}
	for name := range tests {
		test := p.TestEnds(name, time.Minute)
		p.T.Logf("%s: %s", name, operatortest.Where(test.Status.Conditions))
		p.FaultEnds(name, time.Minute)
	}
}

// loginAtDatabases has load tests whose data source name is wrong in different ways.
func loginAtDatabases(p *operatortest.Place, _ []stage.Kind) {
	redis := operatortest.StartRedis(p)
	names := map[string]struct {
		driver v1alpha1.DatabaseDriver
		dsn    string
	}{
		"unreachable": {
			v1alpha1.DatabasePostgres,
			"postgres://" + stage.Planted + "-user:" + stage.Planted + "@127.0.0.1:1/shop?sslmode=disable&application_name=" +
				stage.Planted +
				"-name",
		},
		"malformed": {
			v1alpha1.DatabasePostgres,
			"postgres://127.0.0.1:1/shop?sslmode=disable&password=" + stage.Planted + "&connect_timeout=" + stage.Planted,
		},
		"no-at": {
			v1alpha1.DatabaseMySQL,
			stage.Planted + "-user:" + stage.Planted + "(127.0.0.1:1)/shop?charset=" + stage.Planted,
		},
	}
	for name, test := range names {
		plant(p, "dsn-"+name, map[string]string{"dsn": test.dsn})
		p.Create(operatortest.NewLoadTest(name, redis.Address(), func(t *v1alpha1.RedisLoadTest) {
			t.Spec.Pods.StartDeadline = *operatortest.Length(40 * time.Second) // what is to fail must have begun by then
			t.Spec.Workload = v1alpha1.Workload{CacheAside: &v1alpha1.CacheAsideWorkload{Database: v1alpha1.WorkloadDatabase{
				Driver: test.driver, DSNSecretRef: v1alpha1.SecretKeyReference{Name: "dsn-" + name, Key: "dsn"}, Query: "SELECT 1",
			}}}
		}))
	}
	for name := range names {
		test := p.TestEnds(name, p.Patience)
		p.T.Logf("%s: %s", name, operatortest.Where(test.Status.Conditions))
		if got := operatortest.Reason(test.Status.Conditions); got != string(plan.BackendUnreachable) {
			p.T.Errorf("%s: %s", name, operatortest.Where(test.Status.Conditions))
		}
	}
}

// loginAtPrometheus has faults whose stop conditions are evaluated by servers that send the login back: before the
// injection, after it, by a redirect.
func loginAtPrometheus(p *operatortest.Place, _ []stage.Kind) {
	redis := operatortest.StartRedis(p)
	plant(p, "token", map[string]string{"token": stage.Planted + "-token"})
	plant(p, "basic", map[string]string{"username": stage.Planted + "-user", "password": stage.Planted + "-password"})
	target := stage.RedisPods(redis.Address())
	loadFor(p, &target)
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
			if redis.Hz("") == "50" {
				value = r.Header.Get("Authorization")
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"status":"success","data":{"resultType":"scalar","result":[1,"%s"]}}`, value)
		},
	} {
		server := httptest.NewServer(answer)
		p.T.Cleanup(server.Close)
		for _, secret := range []string{"token", "basic"} {
			f := operatortest.HzFor(name+"-"+secret, "50", time.Minute)
			f.Spec.Trigger.After = operatortest.Length(0)
			f.Spec.StopIf = &v1alpha1.StopConditions{Queries: []v1alpha1.StopQuery{{
				Name: "slo", Query: "up", Above: new("1"), Every: metav1.Duration{Duration: time.Second},
				Prometheus: v1alpha1.PrometheusServer{URL: server.URL, AuthSecretRef: &v1alpha1.SecretReference{Name: secret}},
			}}}
			p.Create(f)
			p.Until(f.Name+" is stopped", time.Minute, func() bool { f = p.Fault(f.Name); return f.Status.Breach != nil },
				func() string { return operatortest.Where(f.Status.Conditions) })
			p.MustChange(operatortest.Change(p, f, func(f *v1alpha1.RedisFault) { f.Spec.Abort = true }))
			f = p.FaultEnds(f.Name, time.Minute)
			p.T.Logf("%s: %s", f.Name, f.Status.Breach.Message)
		}
	}
	abortedRun(p, "run")
}

package children

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/plan"
)

// workloads are one of each, by their names; those called smallest say only what they must.
var workloads = map[string]string{
	"benchmark":          `{benchmark: {tests: [set, get, lrange_100]}, values: {bytes: 3}}`,
	"ranking_smallest":   `{ranking: {members: 1000}}`,
	"ranking":            `{ranking: {members: 10000000, scoreSpread: 100, findCount: 20, weights: {set: 1, find: 2}}, keyspace: {distribution: Zipf}}`,
	"ratelimiter":        `{rateLimiter: {limit: 100, window: 1500ms}, keyspace: {keys: 50}}`,
	"cacheaside":         `{cacheAside: {database: {driver: postgres, dsnSecretRef: {name: shop-db, key: dsn}, query: SELECT 1 WHERE 1 = $1}, mode: DatabaseOnly, hitRatio: "92.5%"}}`,
	"cacheaside_smaller": `{cacheAside: {database: {driver: mysql, dsnSecretRef: {name: shop-db, key: dsn}, query: "SELECT 1 WHERE 1 = ?"}}}`,
	"http_smallest":      `{http: {url: "http://shop/api/{int}"}}`,
	"http":               `{http: {url: "https://shop/api", method: POST, body: "{}", headers: [{name: Content-Type, value: application/json}], keepAlive: false}}`,
}

func ofWorkload(workload string) string {
	return "target: {service: {name: redis}}\nload: {users: 10, duration: 30s}\nworkload: " + workload
}

func TestPlanOfWorkloads(t *testing.T) {
	all := map[string]plan.Workload{}
	for name, workload := range workloads {
		made, err := Plan(loadTest(t, ofWorkload(workload)), addresses)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text, err := json.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}
		var back plan.Plan
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(made, &back); diff != "" {
			t.Errorf("%s: the pod reads another plan:\n%s", name, diff)
		}
		all[name] = made.Workload
	}
	golden(t, "workloads.yaml", all)
}

func TestWorkloadsDefaultedAsTheCRD(t *testing.T) {
	for name, workload := range workloads {
		var value map[string]any
		if err := yaml.Unmarshal([]byte(ofWorkload(workload)), &value); err != nil {
			t.Fatal(err)
		}
		setDefaults(t, specSchema(t), value)
		admitted, err := yaml.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		want := loadTest(t, string(admitted)).Spec.Workload
		if diff := cmp.Diff(want, Defaulted(&loadTest(t, ofWorkload(workload)).Spec).Workload); diff != "" {
			t.Errorf("%s: defaults differ (-CRD +Defaulted):\n%s", name, diff)
		}
	}
}

// The test's name is known to the CRD exactly where the workload knows it: Plan passes what the CRD does.
func TestBenchmarkTestsOfTheCRD(t *testing.T) {
	schema := specSchema(t).Properties["workload"].Properties["benchmark"].Properties["tests"]
	var names []string
	for _, value := range schema.Items.Schema.Enum {
		var name string
		if err := json.Unmarshal(value.Raw, &name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if int(*schema.MaxItems) != len(names) {
		t.Errorf("there are %d tests, and %d may be set", len(names), *schema.MaxItems)
	}
	if _, err := Plan(loadTest(t, ofWorkload(`{benchmark: {tests: [`+strings.Join(names, ", ")+`]}}`)), addresses); err != nil {
		t.Error(err)
	}
}

func TestPlanNamesTheFieldOfAWorkload(t *testing.T) {
	database := `database: {driver: mysql, dsnSecretRef: {name: a, key: b}, query: "SELECT ?"}`
	tests := []struct{ workload, want string }{
		{`{}`, "spec.workload.commands: Required value: set commands, benchmark"},
		{`{rateLimiter: {limit: 1, window: 1s}, http: {url: "http://a"}}`, "spec.workload.http: Forbidden: rateLimiter is set, too"},
		{`{commands: [{name: a, command: [PING]}], ranking: {members: 1000}}`, "spec.workload.ranking: Forbidden: commands is set, too"},
		{`{benchmark: {}}`, "spec.workload.benchmark.tests: "},
		{`{benchmark: {tests: [set, sort]}}`, "spec.workload.benchmark.tests[1]: "},
		{`{benchmark: {tests: [set, set]}}`, "spec.workload.benchmark.tests[1]: "},
		{`{ranking: {}}`, "spec.workload.ranking.members: "},
		{`{ranking: {members: 99}}`, "spec.workload.ranking.findCount: "},
		{`{ranking: {members: 100, weights: {}}}`, "spec.workload.ranking.weights: "},
		{`{rateLimiter: {window: 1s}}`, "spec.workload.rateLimiter.limit: "},
		{`{rateLimiter: {limit: 1}}`, "spec.workload.rateLimiter.window: "},
		{`{cacheAside: {database: {driver: oracle, dsnSecretRef: {name: a, key: b}, query: SELECT}}}`, "spec.workload.cacheAside.database.driver: "},
		{`{cacheAside: {database: {driver: mysql, dsnSecretRef: {name: a}, query: SELECT}}}`, "spec.workload.cacheAside.database.dsnSecretRef: "},
		{`{cacheAside: {database: {driver: mysql, dsnSecretRef: {name: a, key: b}}}}`, "spec.workload.cacheAside.database.query: "},
		{`{cacheAside: {mode: Through, ` + database + `}}`, "spec.workload.cacheAside.mode: "},
		{`{cacheAside: {hitRatio: "101%", ` + database + `}}`, "spec.workload.cacheAside.hitRatio: "},
		{`{cacheAside: {hitRatio: "0%", ` + database + `}}`, "spec.workload.cacheAside.hitRatio: "},
		{`{http: {}}`, "spec.workload.http.url: "},
		{`{http: {url: "http://a", method: LIST}}`, "spec.workload.http.method: "},
		{`{http: {url: "ftp://a"}}`, "spec: PlanInvalid: workload.http.url: "},
		{`{http: {url: "http://a", headers: [{name: "a:b"}]}}`, "spec: PlanInvalid: workload.http.headers[0]: "},
	}
	for _, tt := range tests {
		_, err := Plan(loadTest(t, ofWorkload(tt.workload)), addresses)
		if err == nil || !strings.HasPrefix(strings.TrimPrefix(err.Error(), "["), tt.want) {
			t.Errorf("%s: the error is %v, want one that begins with %q", tt.workload, err, tt.want)
		}
	}
}

// Only the data source name's key is mounted, where the plan says that it lies, and the plan does not hold it.
func TestDatabaseSecretIsMounted(t *testing.T) {
	test := loadTest(t, ofWorkload(workloads["cacheaside"]))
	pod := LoadJob(test, "x").Spec.Template.Spec
	var dir, file string
	for _, v := range pod.Volumes {
		if v.Secret != nil && v.Secret.SecretName == "shop-db" && len(v.Secret.Items) == 1 && v.Secret.Items[0].Key == "dsn" && *v.Secret.DefaultMode == secretMode {
			file = v.Secret.Items[0].Path
			for _, m := range pod.Containers[0].VolumeMounts {
				if m.Name == v.Name && m.ReadOnly {
					dir = m.MountPath
				}
			}
		}
	}
	made, err := Plan(test, addresses)
	if err != nil {
		t.Fatal(err)
	}
	if got := made.Workload.CacheAside.Database.DSNFile; file == "" || got != path.Join(dir, file) {
		t.Errorf("the plan says %s, mounted is %s in %s", got, file, dir)
	}
	plain := LoadJob(loadTest(t, smallest), "x").Spec.Template.Spec
	if len(pod.Volumes) != len(plain.Volumes)+1 {
		t.Errorf("%d volumes, %d without a database", len(pod.Volumes), len(plain.Volumes))
	}
}

func TestOperationsOfWorkloads(t *testing.T) {
	for name, want := range map[string][]string{
		"benchmark": {"set", "get", "lrange_100"}, "ranking": {"set", "find"}, "ranking_smallest": {"set", "get", "find", "findByOrder"},
		"ratelimiter": {"check"}, "cacheaside": {"read"}, "http": {"post"}, "http_smallest": {"get"},
	} {
		made, err := Plan(loadTest(t, ofWorkload(workloads[name])), addresses)
		if err != nil {
			t.Fatal(err)
		}
		if got := made.Operations(); !slices.Equal(got, want) {
			t.Errorf("%s: operations %v, want %v", name, got, want)
		}
	}
}

// Every load test that is shipped as a sample makes a plan.
func TestSamplesMakePlans(t *testing.T) {
	files, err := filepath.Glob("../../config/samples/loadtest*.yaml")
	if err != nil || len(files) < 9 {
		t.Fatalf("%d samples, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		test := &v1alpha1.RedisLoadTest{}
		if err := yaml.UnmarshalStrict(text, test); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if _, err := Plan(test, addresses); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

package children

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/manifest"
	"github.com/redquake/redquake/internal/plan"
)

// workloads are one of each, by their names; those called smallest have only the required fields.
var workloads = map[string]string{
	"benchmark":        `{benchmark: {tests: [set, get, lrange_100]}, values: {bytes: 3}}`,
	"ranking_smallest": `{ranking: {members: 1000}}`,
	"ranking": `{ranking: {members: 10000000, scoreSpread: 100, findCount: 20, weights: {set: 1, find: 2}},
	  keyspace: {distribution: Zipf}}`,
	"ratelimiter":   `{rateLimiter: {limit: 100, window: 1500ms}, keyspace: {keys: 50}}`,
	"lock_smallest": `{lock: {}}`,
	"lock": `{lock: {locks: 5, ttl: 1m, hold: 0s, renewEvery: 1s, retryEvery: 1s, waitReplicas: 2, fencing: true},
	  keyspace: {prefix: "a:"}}`,
	"cacheaside": `{cacheAside: {database: {driver: postgres, dsnSecretRef: {name: shop-db, key: dsn},
	  query: SELECT 1 WHERE 1 = $1}, mode: DatabaseOnly, hitRatio: "92.5%"}}`,
	"cacheaside_smaller": `{cacheAside: {database: {driver: mysql, dsnSecretRef: {name: shop-db, key: dsn}, query: "SELECT 1 WHERE 1 = ?"}}}`,
	"http_smallest":      `{http: {url: "http://shop/api/{int}"}}`,
	"http": `{http: {url: "https://shop/api", method: POST, body: "{}", headers: [{name: Content-Type,
	  value: application/json}], keepAlive: false}}`,
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
	isGolden(t, "workloads.yaml", all)
}

// A plan accepts the same benchmark tests as the CRD.
func TestBenchmarkTestsOfTheCRD(t *testing.T) {
	all := plan.BenchmarkTests()
	if _, err := Plan(loadTest(t, ofWorkload(`{benchmark: {tests: [`+strings.Join(all, ", ")+`]}}`)),
		addresses); err != nil {
		t.Error(err)
	}
	test := loadTest(t, smallest)
	test.Spec.Workload = v1alpha1.Workload{Benchmark: &v1alpha1.BenchmarkWorkload{Tests: []v1alpha1.BenchmarkTest{"sort"}}}
	err := manifest.Admit(test)
	if err == nil || strings.Count(err.Error(), `"`) != 2*(len(all)+1) {
		t.Errorf("%v, want one unsupported value and these that are supported: %q", err, all)
	}
}

// The plan refuses what the CRD cannot validate, and the message begins with the field of the spec.
func TestPlanNamesTheField(t *testing.T) {
	const target = "target: {service: {name: redis}}\n"
	http := func(members string) string {
		return target + "load: {users: 10, duration: 30s}\nworkload: {http: " + members + "}"
	}
	rest := "workload: {commands: [{name: get, command: [GET, a]}]}\n"
	tests := []struct{ name, spec, want string }{
		{"command", ofWorkload(`{commands: [{name: a, command: [""]}]}`), "spec.workload.commands[0].command: "},
		{"URL", http(`{url: "http://shop:port/"}`), "spec.workload.http.url: "},
		{
			"header", http(`{url: "http://shop/", headers: [{name: a, value: "b\nc"}]}`),
			"spec.workload.http.headers[0].value: ",
		},
		{
			"query", ofWorkload(`{cacheAside: {database: {driver: mysql, dsnSecretRef: {name: a, key: b}, query: " "}}}`),
			"spec.workload.cacheAside.database.query: ",
		},
		{"users", ofWorkload(`{lock: {locks: 6}}`), "spec.workload.lock.locks: 6 locks of 1 load pods need 12 users: "},
		{"verify", http(`{url: "http://shop/"}`) + "\nverify: {acknowledgedWrites: true}", "spec.verify: "},
		{"stages without load", target + rest + "load: {stages: [{duration: 1s, users: 0}]}", "spec.load.stages: "},
		{
			"search without time", target + rest + "load: {duration: 10s, search: {from: 10}}\nobjectives: {maxLatencyP99: 1ms}",
			"spec.load.duration: the first trial alone takes 1m42s: ",
		},
		{
			"too many intervals", target + rest + "load: {users: 1, duration: 168h}\nobserve: {interval: 50ms}",
			"spec.observe.interval: ",
		},
	}
	for _, tt := range tests {
		_, err := Plan(loadTest(t, tt.spec), addresses)
		if problem, ok := errors.AsType[*plan.Error](err); !ok || !strings.HasPrefix(problem.Message, tt.want) {
			t.Errorf("%s: the error is %v, want one that begins with %q", tt.name, err, tt.want)
		}
	}
}

func TestPlanNeedsAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"":              `spec.target.addresses[0]: "" must be host:port`,
		"redis":         `spec.target.addresses[0]: "redis" must be host:port`,
		"redis:70000":   `spec.target.addresses[0]: the port of "redis:70000" must be between 1 and 65535`,
		"redis:http":    `spec.target.addresses[0]: the port of "redis:http" must be between 1 and 65535`,
		":6379":         `spec.target.addresses[0]: ":6379" must be host:port`,
		"[::1]:6379":    "",
		"10.1.2.3:6379": "",
	} {
		_, err := Plan(loadTest(t, smallest), []string{address})
		problem, ok := errors.AsType[*plan.Error](err)
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", address, err)
		case want != "" && (!ok || problem.Message != want):
			t.Errorf("%q: %v, want %s", address, err, want)
		}
	}
	_, err := Plan(loadTest(t, smallest), nil)
	if problem, ok := errors.AsType[*plan.Error](err); !ok ||
		!strings.HasPrefix(problem.Message, "spec.target: no address of a Redis was found") {
		t.Errorf("without addresses: %v", err)
	}
}

// Only the key of the data source name is mounted, at the path in the plan, and the plan does not contain it.
func TestDatabaseSecretIsMounted(t *testing.T) {
	test := loadTest(t, ofWorkload(workloads["cacheaside"]))
	pod := LoadJob(test, "checkout-cache-plan", "x", FixedUserIDs).Spec.Template.Spec
	var dir, file string
	for _, v := range pod.Volumes {
		if v.Secret != nil && v.Secret.SecretName == "shop-db" && len(v.Secret.Items) == 1 &&
			v.Secret.Items[0].Key == "dsn" && *v.Secret.DefaultMode == secretMode {
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
		t.Errorf("the plan's path is %s, mounted is %s in %s", got, file, dir)
	}
	plain := LoadJob(loadTest(t, smallest), "checkout-cache-plan", "x", FixedUserIDs).Spec.Template.Spec
	if len(pod.Volumes) != len(plain.Volumes)+1 {
		t.Errorf("%d volumes, %d without a database", len(pod.Volumes), len(plain.Volumes))
	}
}

func TestOperationsOfWorkloads(t *testing.T) {
	for name, want := range map[string][]string{
		"benchmark":        {"set", "get", "lrange_100"},
		"ranking":          {"set", "find"},
		"ranking_smallest": {"set", "get", "find", "findByOrder"},
		"ratelimiter":      {"check"},
		"lock":             {"take", "renew", "release"},
		"cacheaside":       {"read"},
		"http":             {"post"},
		"http_smallest":    {"get"},
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
		test, err := manifest.ReadLoadTest(bytes.NewReader(text), nil)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if _, err := Plan(test, addresses); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

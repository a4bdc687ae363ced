//go:build e2e

package e2e_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
)

// workloadRun is a load test of config/samples for one workload.
type workloadRun struct {
	name       string                          // of the object
	sample     string                          // file
	operations []string                        // of the summary
	adapt      func(*v1alpha1.RedisLoadTest)   // from the sample, to what the test has; nil = as it is
	small      func(*v1alpha1.RedisLoadTest)   // for a machine that has other work, beside shorter times
	check      func(*namespace, *finishedLoad) // what only a right run of this workload gives
}

// workloadRuns are all workloads, with both databases behind cacheAside.
var workloadRuns = []workloadRun{
	{"checkout-cache", "loadtest.yaml", []string{"set", "get"}, nil, func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Load.Rate, test.Spec.Load.UntilFaultsSettle = new(int32(200)), nil
	}, checkCommands},
	{
		"benchmark",
		"loadtest-benchmark.yaml",
		[]string{"set", "get", "incr", "lpush", "lpop"},
		nil,
		func(test *v1alpha1.RedisLoadTest) {
			slowClosedLoop(test, 5*time.Millisecond)
		},
		checkBenchmark,
	},
	{
		"ranking",
		"loadtest-ranking.yaml",
		[]string{"set", "get", "find", "findByOrder"},
		nil,
		func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Load.Rate, test.Spec.Workload.Ranking.Members = new(int32(200)), 20000
		},
		checkRanking,
	},
	{"rate-limiter", "loadtest-ratelimiter.yaml", []string{"check"}, nil, func(test *v1alpha1.RedisLoadTest) {
		// of which each has as many requests as in the sample
		test.Spec.Load.Rate, test.Spec.Workload.Keyspace.Keys = new(int32(400)), 20
	}, checkRateLimiter},
	{"locks", "loadtest-lock.yaml", []string{"take", "renew", "release"}, func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Target = v1alpha1.RedisTarget{Service: &v1alpha1.ServiceReference{Name: "redis", Port: 6379}}
	}, func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Load.Users, test.Spec.Workload.Lock.Locks = new(int32(4)), 2
		test.Spec.Workload.Lock.TTL = *span(30 * time.Second) // a busy machine is no reason to lose a lock
		test.Spec.Workload.Lock.RenewEvery = span(500 * time.Millisecond)
	}, checkLocks},
	{"cache-aside", "loadtest-cacheaside.yaml", []string{"read"}, nil, fewReads, checkCacheAside},
	{"cache-aside-mariadb", "loadtest-cacheaside.yaml", []string{"read"}, func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Workload.CacheAside.Database = v1alpha1.WorkloadDatabase{
			Driver: v1alpha1.DatabaseMySQL, DSNSecretRef: v1alpha1.SecretKeyReference{Name: "shop-mariadb", Key: "dsn"},
			Query: "SELECT title, body FROM articles WHERE id = ?",
		}
		test.Spec.Workload.Keyspace.Prefix = "mariadb:"
	}, fewReads, checkCacheAside},
	{"database-only", "loadtest-cacheaside.yaml", []string{"read"}, func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Workload.CacheAside.Mode = v1alpha1.CacheAsideDatabaseOnly
		test.Spec.Workload.Keyspace.Prefix = "uncached:"
	}, fewReads, checkDatabaseOnly},
	{"shop-api", "loadtest-http.yaml", []string{"get"}, func(test *v1alpha1.RedisLoadTest) {
		load := &test.Spec.Load // as much as the application can do
		load.Users, load.RampUp, load.Duration = new(int32(10)), span(5*time.Second), span(time.Minute)
		test.Spec.Workload.HTTP.URL = "http://shop/cgi-bin/visit"
	}, func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Load.Users = new(int32(4))
	}, checkHTTP},
}

func slowClosedLoop(test *v1alpha1.RedisLoadTest, thinkTime time.Duration) {
	test.Spec.Load.Users, test.Spec.Load.ThinkTime, test.Spec.Client.Connections = new(int32(4)), span(thinkTime), 0
}

// fewReads reads few rows, from the empty cache on: reads hit and miss.
func fewReads(test *v1alpha1.RedisLoadTest) {
	slowClosedLoop(test, 10*time.Millisecond)
	test.Spec.Workload.Keyspace.Keys = 500
	test.Spec.Load.WarmUp = nil
}

// of is the load test.
func (w *workloadRun) of(n *namespace) *v1alpha1.RedisLoadTest {
	n.Helper()
	test := &v1alpha1.RedisLoadTest{}
	n.sample(w.sample, test)
	test.Name = w.name
	if w.adapt != nil {
		w.adapt(test)
	}
	return test
}

// smallOne is the load test, shortened.
func (w *workloadRun) smallOne(n *namespace) *v1alpha1.RedisLoadTest {
	n.Helper()
	test := w.of(n)
	load := &test.Spec.Load
	load.RampUp, load.WarmUp, load.Duration = nil, span(time.Second), span(10*time.Second)
	test.Spec.Pods.Count = 1
	// an error is not one of a busy machine
	test.Spec.Client.DialTimeout, test.Spec.Client.RequestTimeout = *span(20 * time.Second), *span(20 * time.Second)
	w.small(test)
	return test
}

func TestWorkloads(t *testing.T) {
	t.Parallel()
	workloads(t)
}

// atOnce is how many workloads run at the same time: more would keep each other, and the other lanes, from running on a
// machine with two cores.
const atOnce = 3

// workloads runs all workloads through load pods, on one Redis.
func workloads(t *testing.T) {
	n := newNamespace(t, "workloads")
	n.applyBackends()
	for some := range slices.Chunk(workloadRuns, atOnce) {
		for i := range some {
			n.create(some[i].smallOne(n))
		}
		for i := range some {
			w := &some[i]
			t.Run(w.name, func(t *testing.T) {
				n := n.in(t)
				w.checkEnd(n, n.waitLoadTest(w.name, 2*patience, v1alpha1.ReasonSucceeded))
			})
		}
	}
}

// applyBackends makes Redis, both databases and the application, and waits until they serve.
func (n *namespace) applyBackends() {
	n.Helper()
	n.applySample("postgres/postgres.yaml", nil)
	n.applySample("mariadb/mariadb.yaml", nil)
	objects, err := readObjects("testdata/shop.yaml")
	if err != nil {
		n.Fatal(err)
	}
	for _, object := range objects {
		n.create(object)
	}
	n.applyRedis(nil)
	for _, set := range []string{"postgres", "mariadb", "shop"} {
		n.rolledOut(set)
	}
}

//go:build e2e

package e2e_test

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/record/merged"
)

// finishedLoad is a load test that has run to its end, with its record.
type finishedLoad struct {
	*v1alpha1.RedisLoadTest
	series *merged.Series
}

// checkEnd checks the figures that every workload has, then the workload's own.
func (w *workloadRun) checkEnd(n *namespace, test *v1alpha1.RedisLoadTest) {
	n.Helper()
	f := &finishedLoad{test, n.record(test)}
	n.sumsAgree(test, f.series)
	s := test.Status.Summary
	n.Logf("%s: %s\n%s\n%s", test.Status.Verdict, test.Status.Display.TPS, asJSON(n.T, s),
		asJSON(n.T, test.Status.Bottleneck))
	if s.Requests == 0 || s.Errors != 0 || s.Latency == nil || s.Latency.P50.Duration == 0 {
		n.Errorf("%d requests, %d errors, latency %+v", s.Requests, s.Errors, s.Latency)
	}
	var names []string
	sum := int64(0)
	for _, op := range s.Operations {
		names, sum = append(names, op.Name), sum+op.Requests
		if op.Requests == 0 || op.Latency == nil || op.Latency.P50.Duration == 0 || valueOf(n, op.Throughput) == 0 {
			n.Errorf("operation %+v", op)
		}
	}
	if !slices.Equal(names, w.operations) || sum != s.Requests {
		n.Errorf("operations %v with %d requests in all, want %v with %d", names, sum, w.operations, s.Requests)
	}
	if got := test.Status.Target; got == nil || got.Server != "redis" || got.Version == "" {
		n.Errorf("target %+v", got)
	}
	if test.Status.Bottleneck == nil || test.Status.Bottleneck.Evidence == "" {
		n.Errorf("bottleneck %+v", test.Status.Bottleneck)
	}
	w.check(n, f)
}

// figure is a figure of the workload; NaN = there is none.
func (f *finishedLoad) figure(n *namespace, name string, unit v1alpha1.Unit) float64 {
	n.Helper()
	for _, g := range f.Status.Summary.Workload {
		if g.Name == name && g.Unit == unit {
			return valueOf(n, g.Value)
		}
	}
	return math.NaN()
}

func valueOf(n *namespace, d v1alpha1.Decimal) float64 {
	n.Helper()
	value, err := strconv.ParseFloat(string(d), 64)
	if err != nil {
		n.Fatal(err)
	}
	return value
}

// keys counts the keys of Redis that match a pattern.
func (n *namespace) keys(pattern string) int {
	n.Helper()
	count := 0
	for all := n.redis().Scan(n.Context(), 0, pattern, 10000).Iterator(); all.Next(n.Context()); {
		count++
	}
	return count
}

// checkCommands: the weights are 1 and 4.
func checkCommands(n *namespace, f *finishedLoad) {
	if share := f.share("set"); share < 0.15 || share > 0.25 {
		n.Errorf("set has %.2f of the requests, want 0.2", share)
	}
}

func (f *finishedLoad) share(operation string) float64 {
	for _, op := range f.Status.Summary.Operations {
		if op.Name == operation {
			return float64(op.Requests) / float64(f.Status.Summary.Requests)
		}
	}
	return 0
}

// checkBenchmark: each test has its own part of the measured time.
func checkBenchmark(n *namespace, f *finishedLoad) {
	from := measuredFrom(f.RedisLoadTest)
	part := f.Spec.Load.Duration.Duration / time.Duration(len(f.series.Ops))
	for k, name := range f.series.Ops {
		inside, all := uint64(0), uint64(0)
		for i := range f.series.Len() {
			at, ok := time.Duration(i)*f.series.Step, f.series.At(i).Ops[k].OK
			if at < from {
				continue
			}
			all += ok
			if begin := from + time.Duration(k)*part; at >= begin && at < begin+part {
				inside += ok
			}
		}
		if float64(inside) < 0.9*float64(all) {
			n.Errorf("%s: only %d of %d requests were answered in its part of %s", name, inside, all, part)
		}
	}
	for i, op := range f.Status.Summary.Operations {
		if got, want := valueOf(n, op.Throughput), float64(op.Requests)/part.Seconds(); math.Abs(got-want) > 0.1*want {
			n.Errorf("%s (%d): throughput %v, want that of its own part, %.1f", op.Name, i, got, want)
		}
	}
}

// checkRanking: all members are there, and the weights are 10, 10, 2, 1.
func checkRanking(n *namespace, f *finishedLoad) {
	if members := n.redis().ZCard(n.Context(), "ranks:ranking").Val(); members != f.Spec.Workload.Ranking.Members {
		n.Errorf("the ranking has %d members, want %d", members, f.Spec.Workload.Ranking.Members)
	}
	for name, want := range map[string]float64{"set": 10. / 23, "get": 10. / 23, "find": 2. / 23, "findByOrder": 1. / 23} {
		if got := f.share(name); math.Abs(got-want) > 0.05 {
			n.Errorf("%s has %.3f of the requests, want %.3f", name, got, want)
		}
	}
}

// checkRateLimiter: each window of each user allows no more than the limit, and ends.
func checkRateLimiter(n *namespace, f *finishedLoad) {
	spec, keys := f.Spec.Workload.RateLimiter, f.Spec.Workload.Keyspace.Keys
	allowed, denied := f.figure(n, "allowed", v1alpha1.UnitCount), f.figure(n, "denied", v1alpha1.UnitCount)
	windows := f.Spec.Load.Duration.Seconds()/spec.Window.Seconds() + 2
	if !(denied > 0 && allowed > 0 && allowed <= windows*float64(spec.Limit*keys)) {
		n.Errorf("%v allowed and %v denied, want at most %v for each of %d users in %v windows", allowed, denied, spec.Limit,
			keys, windows)
	}
	// A request whose two commands are on both sides of the warm-up's end may count in one of both only.
	if all := float64(f.Status.Summary.Requests); math.Abs(allowed+denied-all) > 0.01*all {
		n.Errorf("%v allowed and %v denied of %v requests", allowed, denied, all)
	}
	if share := f.figure(n, "deniedShare", v1alpha1.UnitShare); math.Abs(share-denied/(allowed+denied)) > 0.001 {
		n.Errorf("deniedShare is %v of %v allowed and %v denied", share, allowed, denied)
	}
	n.eventually(patience, "all windows have ended", func() (bool, string) {
		left := n.keys(f.Spec.Workload.Keyspace.Prefix + "limit:*")
		return left == 0, strconv.Itoa(left)
	})
}

// checkLocks: locks were taken and given up, and no two users had one at the same time.
func checkLocks(n *namespace, f *finishedLoad) {
	g := f.Status.Guarantees
	if g == nil || g.Lock == nil || g.Lock.Taken == 0 || g.Lock.Overlaps != 0 || g.Lock.Lost != 0 || g.Untold != "" {
		n.Errorf("%s", asJSON(n.T, g))
	}
}

// checkCacheAside: a read is a hit or a miss, and Redis holds the rows.
func checkCacheAside(n *namespace, f *finishedLoad) {
	hits, misses := f.figure(n, "hits", v1alpha1.UnitCount), f.figure(n, "misses", v1alpha1.UnitCount)
	if all := float64(f.Status.Summary.Requests); hits+misses != all || hits == 0 || misses == 0 {
		n.Errorf("%v hits and %v misses of %v reads", hits, misses, all)
	}
	if ratio := f.figure(n, "hitRatio", v1alpha1.UnitShare); math.Abs(ratio-hits/(hits+misses)) > 0.001 {
		n.Errorf("hitRatio is %v of %v hits and %v misses", ratio, hits, misses)
	}
	for _, name := range []string{"cacheTime", "databaseTime"} {
		if mean := f.figure(n, name, v1alpha1.UnitSeconds); !(mean > 0) {
			n.Errorf("%s is %v", name, mean)
		}
	}
	key := f.Spec.Workload.Keyspace.Prefix + "0" // the most frequent one
	want := "Article 0\t" + strings.Repeat("text ", 80) + "\n"
	if got, ttl := n.redis().Get(n.Context(), key).Val(),
		n.redis().TTL(n.Context(), key).Val(); got != "" && got != want || ttl > f.Spec.Workload.Keyspace.TTL.Duration {
		n.Errorf("%s is %q with a TTL of %s, want the row", key, got, ttl)
	}
	if cached := n.keys(f.Spec.Workload.Keyspace.Prefix + "*"); cached == 0 {
		n.Error("Redis holds no row")
	}
}

// checkDatabaseOnly: every read took time in the database, and none left anything in Redis.
func checkDatabaseOnly(n *namespace, f *finishedLoad) {
	if mean := f.figure(n, "databaseTime", v1alpha1.UnitSeconds); !(mean > 0) || len(f.Status.Summary.Workload) != 1 {
		n.Errorf("figures %+v, want databaseTime", f.Status.Summary.Workload)
	}
	probes := n.keys(f.Spec.Workload.Keyspace.Prefix + "probe:*")
	if cached := n.keys(f.Spec.Workload.Keyspace.Prefix + "*"); cached != probes {
		n.Errorf("Redis holds %d rows", cached-probes)
	}
	if b := f.Status.Bottleneck; b.Component == "RedisMainThread" {
		n.Errorf("bottleneck %+v", b)
	}
}

// checkHTTP: the application has counted every request.
func checkHTTP(n *namespace, f *finishedLoad) {
	all, _ := total(f.series, 0)
	if visits, err := n.redis().Get(n.Context(), "visits").Uint64(); err != nil || visits != all.OK {
		n.Errorf("the application had %d visits (%v), the load sent %d", visits, err, all.OK)
	}
	if got := f.figure(n, "status2xx", v1alpha1.UnitCount); got != float64(f.Status.Summary.Requests) {
		n.Errorf("%v answers of status 200 to 299 to %d requests", got, f.Status.Summary.Requests)
	}
	for _, name := range []string{"connectTime", "firstByteTime", "bodyTime"} {
		if mean := f.figure(n, name, v1alpha1.UnitSeconds); !(mean > 0) {
			n.Errorf("%s is %v", name, mean)
		}
	}
}

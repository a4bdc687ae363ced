package docs_test

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/format"
)

// table is a table of a page: its cells by the text of the first cell of their row, and by their column.
type table map[string]map[string]string

// plain is a page with plain spaces.
func plain(t *testing.T, path string) string {
	t.Helper()
	return strings.ReplaceAll(read(t, path), "\u00a0", " ")
}

// tableAfter is the first table after a text of a page.
func tableAfter(t *testing.T, path, after string) table {
	t.Helper()
	_, text, found := strings.Cut(plain(t, path), after)
	_, text, more := strings.Cut(text, "\n|")
	if !found || !more {
		t.Fatalf("%s has no table after %q", path, after)
	}
	text, _, _ = strings.Cut("|"+text, "\n\n")
	cells := func(line string) []string {
		var list []string
		for _, cell := range strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|") {
			list = append(list, strings.TrimSpace(cell))
		}
		return list
	}
	lines := strings.Split(text, "\n")
	columns, rows := cells(lines[0]), table{}
	for _, line := range lines[2:] {
		if !strings.HasPrefix(line, "|") {
			break
		}
		row := map[string]string{}
		for i, cell := range cells(line) {
			row[columns[i]] = cell
		}
		rows[cells(line)[0]] = row
	}
	return rows
}

// text is a cell as it stands there, without the change that may follow it.
func (c table) text(t *testing.T, row, column string) string {
	t.Helper()
	text, there := c[row][column]
	if !there {
		t.Fatalf("there is no %s of %s in %v", column, row, c)
	}
	text, _, _ = strings.Cut(text, " (")
	return strings.Trim(text, "*")
}

var leadingNumber = regexp.MustCompile(`^-?[\d,]*\.?\d+`)

// number is the number with which a cell begins: of lengths in seconds.
func (c table) number(t *testing.T, row, column string) float64 {
	t.Helper()
	text := c.text(t, row, column)
	n, err := strconv.ParseFloat(strings.ReplaceAll(leadingNumber.FindString(text), ",", ""), 64)
	if err != nil {
		t.Fatalf("%s of %s is %q", column, row, text)
	}
	if strings.HasSuffix(text, " ms") {
		n /= 1000
	}
	return n
}

// rounded writes a number with so many significant digits.
func rounded(x float64, digits int) string {
	if x == 0 {
		return "0"
	}
	scale := math.Pow10(digits - 1 - int(math.Floor(math.Log10(math.Abs(x)))))
	return strconv.FormatFloat(math.Round(x*scale)/scale, 'f', -1, 64)
}

// words are small numbers as pages write them.
var words = map[float64]string{2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven"}

// says checks that a page has a text, wherever its lines end.
func says(t *testing.T, path, text string, figures ...any) {
	t.Helper()
	if text = fmt.Sprintf(text, figures...); !strings.Contains(strings.Join(strings.Fields(plain(t, path)), " "), text) {
		t.Errorf("%s lacks %q, which its source says", path, text)
	}
}

// What the page of the accuracy says of all outages is what the measured table has.
func TestAccuracy(t *testing.T) {
	const page, quiet, disturbed, within = "docs/accuracy.md", "all, quiet", "all, disturbed", "truth within the bounds"
	measured := tableAfter(t, "docs/benchmarks.md", "<!-- accuracy:begin -->")
	outages := measured.number(t, quiet, "outages") + measured.number(t, disturbed, "outages")
	right := measured.number(t, quiet, within) + measured.number(t, disturbed, within)
	says(t, page, "%.0f of %.0f true lengths lie within the bounds, of the disturbed ones %s of %s.", right, outages,
		measured.text(t, disturbed, within), measured.text(t, disturbed, "outages"))
	of := func(row, column string) string { return rounded(measured.number(t, row, column), 2) }
	says(t, page, "The median width is %s ms quiet and %s ms disturbed,", of(quiet, "median width ms"),
		of(disturbed, "median width ms"))
	says(t, page, "and the median error of the figure itself %s and %s ms.", of(quiet, "median error ms"),
		of(disturbed, "median error ms"))
}

var starvedLoad = regexp.MustCompile(`\{"(alone|beside one|beside three)", loop\{([\d_]+),.*, ([\d.]+)\},`)

// The loads whose generator waited for a CPU are those of the unit test, with the bounds that it allows.
func TestStarvedLoads(t *testing.T) {
	rate, bound := map[string]string{}, map[string]string{}
	for _, m := range starvedLoad.FindAllStringSubmatch(read(t, "internal/result/starved_test.go"), -1) {
		rate[m[1]], bound[m[1]] = strings.ReplaceAll(m[2], "_", ","), m[3]
	}
	const page, alone, one, three = "docs/accuracy.md", "alone", "beside one", "beside three"
	if len(rate) != 3 {
		t.Fatalf("only %v were found", rate)
	}
	says(t, page, "%s/s alone, %s/s beside one program and %s/s beside three", rate[alone], rate[one], rate[three])
	says(t, page, "at most %s, %s and %s times as high", bound[alone], bound[one], bound[three])
}

// How many runs without a loss leave how many with one is what the formula of the page gives.
func TestRunsWithoutALoss(t *testing.T) {
	share := func(runs float64) float64 { return 100 * (1 - math.Pow(0.05, 1/runs)) }
	says(t, "docs/statistics.md", "up to 1 - 0.05^(1/n) of such runs with one (95 %%) [6]: %.0f %% of 6, %.0f %% of 20",
		share(6), share(20))
}

// What is said of a day with 1,000 load pods is what the measured tables have.
func TestDay(t *testing.T) {
	const page, intervals = "docs/benchmarks.md", 1000 * 24 * 3600 * 10
	day := tableAfter(t, page, "computed: the same with one every 0.1 s**")
	most := func(column string) (most float64) {
		for row := range day {
			most = max(most, day.number(t, row, column))
		}
		return most
	}
	memory, cores := most("computed: resident MiB"), most("computed: cores")
	if memory > 400-40 || cores > 0.3 {
		t.Errorf("%v MiB and %v cores are beyond the limits", memory, cores)
	}
	says(t, page, "At most %.0f MiB and %v of a core are computed in the runs below", memory, cores)
	hours := math.Round(intervals *
		tableAfter(t, page, "<!-- collect:begin -->").number(t, "the same per merged interval", "value") / 1e6 / 3600)
	says(t, page, "record %d million intervals in 24 hours, about %s hours of CPU time to merge", intervals/1_000_000,
		words[hours])
}

func span(b *v1alpha1.BoundedDuration) string {
	return format.Span(b.Value.Duration, b.AtLeast.Duration, b.AtMost.Duration)
}

// The statuses of the run of the README agree with themselves: the columns and the objectives have the figures.
func TestStatusesOfTheReadme(t *testing.T) {
	var load v1alpha1.RedisLoadTestStatus
	var fault v1alpha1.RedisFaultStatus
	statusOf(t, "docs/redisloadtest.md", &load)
	statusOf(t, "docs/redisfault.md", &fault)
	i := fault.Impact
	dip, _ := i.Dip.Value.Number()
	if d := fault.Display; d.Outage != span(&i.Outage.BoundedDuration) || d.Recovery != span(i.RecoveryTime) ||
		d.Dip != format.Share(dip) {
		t.Errorf("the columns are %+v of %+v", d, i)
	}
	figures := map[string]*v1alpha1.BoundedDuration{
		"maxOutage":       &i.Outage.BoundedDuration,
		"maxRecoveryTime": i.RecoveryTime,
	}
	for _, o := range fault.Objectives {
		f := figures[o.Name]
		if f == nil {
			t.Fatalf("%s judges no figure that is known here", o.Name)
		}
		for got, want := range map[v1alpha1.Decimal]v1alpha1.Duration{
			o.Actual:  f.Value,
			o.AtLeast: f.AtLeast,
			o.AtMost:  f.AtMost,
		} {
			if got != want.InSeconds() {
				t.Errorf("%s has %s, the figure %s", o.Name, got, want.InSeconds())
			}
		}
	}
	if one := load.Faults[0]; *one.Outage != i.Outage.Value || *one.RecoveryTime != i.RecoveryTime.Value {
		t.Errorf("the load test has %+v", one)
	}
}

// The run of the README has the same figures wherever it is told.
func TestRunOfTheReadme(t *testing.T) {
	var load v1alpha1.RedisLoadTestStatus
	var fault v1alpha1.RedisFaultStatus
	statusOf(t, "docs/redisloadtest.md", &load)
	statusOf(t, "docs/redisfault.md", &fault)
	i, columns, sum := fault.Impact, fault.Display, load.Summary
	apart := func(text string) string { return regexp.MustCompile(`(\d)(ms|s|%)`).ReplaceAllString(text, "$1 $2") }
	length := func(m v1alpha1.Duration) string { return format.Duration(m.Duration) }
	const first = "docs/getting-started.md"
	says(t, first, "For %s no request succeeded.", apart(columns.Outage))
	says(t, first, "The worst second had %s successes instead of %s: a dip of %s.", i.MinTPS, i.BaselineTPS,
		apart(columns.Dip))
	says(t, first, "%s after the kill the throughput was back", apart(columns.Recovery))
	says(t, first, "%d of %d requests failed, %s", sum.Errors, sum.Requests, apart(load.Display.Errors))
	says(t, first, "p99 shows it: %s over the whole run, %s before the fault", apart(load.Display.P99),
		apart(length(*i.LatencyP99.Before)))
	says(t, "docs/measuring.md", "most of them answered up to %s s late", rounded(sum.MaxLag.Duration.Seconds(), 1))
	const kill = "docs/faults/podkill.md"
	says(t, kill, "0s Injected redis-0 %s", fault.Timeline[0].Message)
	says(t, kill, "%s FirstSuccess clients after %s without one", columns.Recovery, columns.Outage)
	says(t, kill, "%s Recovered clients %s", columns.Recovery, fault.Timeline[1].Message)
	says(t, kill, "ServerServes probe after %s without a success", length(i.Outages.Probe.Value))
}

// What is said of the run in the pictures of reports is in the file of which `make screenshots` takes them.
func TestRunOfThePictures(t *testing.T) {
	const path, page = "internal/report/run/testdata/demo.yaml", "docs/reports.md"
	if !strings.Contains(read(t, "Makefile"), "DEMO_RUN ?= $(CURDIR)/"+path+"\n") {
		t.Error("make screenshots takes another run")
	}
	var load v1alpha1.RedisLoadTest
	var fault v1alpha1.RedisFault
	documents := strings.Split(read(t, path), "\n---\n")
	for i, into := range []any{&load, &fault} {
		if err := yaml.Unmarshal([]byte(documents[i]), into); err != nil {
			t.Fatal(err)
		}
	}
	i := fault.Status.Impact
	says(t, page, "a redis-server whose pod was killed under %d requests a second", *load.Spec.Load.Rate)
	says(t, page, "Nobody answered for %d ms,", i.Outage.Value.Duration.Milliseconds())
	says(t, page, "and %d of %d acknowledged writes were lost.", *i.LostWrites, load.Status.Verification.Acknowledged)
}

// What is said of the demos follows from the objects that they run.
func TestDemos(t *testing.T) {
	var load v1alpha1.RedisLoadTest
	if err := yaml.Unmarshal([]byte(read(t, "config/samples/loadtest.yaml")), &load); err != nil {
		t.Fatal(err)
	}
	rate, shape := *load.Spec.Load.Rate, &load.Spec.Load
	rampUp, warmUp, measured := shape.RampUp.Seconds(), shape.WarmUp.Seconds(), shape.Duration.Seconds()
	says(t, "README.md", "%v s of which are the load", rampUp+warmUp+measured)
	says(t, "README.md", "Two pods sent %d requests a second", rate)
	says(t, "docs/getting-started.md",
		"sends %d requests a second from two pods: %v s ramp-up, %v s warm-up, %v s measured", rate, rampUp, warmUp, measured)
	if load.Spec.Pods.Count != 2 {
		t.Errorf("%d pods", load.Spec.Pods.Count)
	}
}

var listedExperiment = regexp.MustCompile(`fsync +Running +(\d+)/(\d+) .* (\d+)m\n`)

// How long the demo of an experiment takes is said alike everywhere, and as long as the run whose list the reference
// shows.
func TestDemoOfAnExperiment(t *testing.T) {
	const sample = "config/samples/experiment-benchmark.yaml"
	var experiment v1alpha1.RedisExperiment
	if err := yaml.Unmarshal([]byte(read(t, sample)), &experiment); err != nil {
		t.Fatal(err)
	}
	runs := int(experiment.Spec.Repeat)
	for _, p := range experiment.Spec.Matrix {
		runs *= max(len(p.Settings), len(p.Values))
	}
	m := listedExperiment.FindStringSubmatch(read(t, "docs/redisexperiment.md"))
	if m == nil || m[2] != strconv.Itoa(runs) {
		t.Fatalf("docs/redisexperiment.md shows %q, the experiment has %d runs", m, runs)
	}
	finished, err := strconv.Atoi(m[1])
	after, err2 := strconv.Atoi(m[3])
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	minutes := after * runs / finished
	says(t, "README.md", "%d load tests in %d minutes", runs, minutes)
	says(t, "Makefile", "experiment-benchmark.html (%d minutes)", minutes)
	says(t, sample, "About %d minutes.", minutes)
}

// galleryTable is the table of an entry in its page of the gallery.
func galleryTable(t *testing.T, entry string) table {
	t.Helper()
	return tableAfter(t, "docs/gallery/"+entry+".md", "<!-- figures: "+entry+" ")
}

// What is said of the killed pods of the gallery is in their tables, and in the report beside.
func TestGalleryOfPods(t *testing.T) {
	const page, report = "docs/gallery/pod-kill-when-steady.md", "docs/gallery/reports/pod-kill-when-steady.md"
	kill := galleryTable(t, "pod-kill-when-steady")
	outage := kill.text(t, "pod-kill", "outage")
	says(t, page, "after %s, of which %s without a single answer", kill.text(t, "pod-kill", "recoveryTime"), outage)
	says(t, "README.md", "after %s without an answer", outage)
	share := regexp.MustCompile(`; ([\d.]+ %) ended in an error`).FindStringSubmatch(plain(t, report))
	if share == nil {
		t.Fatal("the report has no share of errors")
	}
	says(t, page, "%s of all requests of the minute: %.0f failed", share[1],
		tableAfter(t, report, "### What became of the requests").number(t, "all", "Whole run"))
	says(t, page, "%s s passed until the container ran",
		rounded(tableAfter(t, report, "The parts of the recovery.").number(t, "ContainerStarted", "Took"), 2))

	const attach, held = "docs/gallery/pvc-multi-attach.md", 20
	says(t, attach, "stayed on the old node for %d s", held)
	says(t, attach, "%s s together",
		rounded(galleryTable(t, "pvc-multi-attach").number(t, "volume-left-behind", "recoveryTime")-held, 2))

	deleted := galleryTable(t, "graceful-delete-loses-writes")
	says(t, "docs/gallery/graceful-delete-loses-writes.md", "at most %.0f ms without a success",
		1000*deleted.number(t, "delete=graceful", "outage"))
}

// The same of its databases.
func TestGalleryOfBackends(t *testing.T) {
	cache := galleryTable(t, "cache-before-and-after")
	before, with := cache.number(t, "backend=mariadb", "throughput"), cache.number(t, "backend=cached", "throughput")
	says(t, "docs/gallery/cache-before-and-after.md", "%.0f, %s: %s times", before, rounded(with, 2),
		rounded(with/before, 2))

	const page = "docs/gallery/starved.md"
	starved := galleryTable(t, "starved")
	served := func(cpu, bytes string) float64 {
		return starved.number(t, "cpu="+cpu+", bytes="+bytes+", disk=slow", "throughput")
	}
	says(t, page, "%.0f requests a second instead of %.0f with small values", served("0.1", "128"), served("1", "128"))
	says(t, page, "%.0f and %.0f with large ones", served("0.1", "12800"), served("1", "12800"))
	p99 := func(bytes string) string {
		return strings.TrimSuffix(starved.text(t, "cpu=0.1, bytes="+bytes+", disk=fast", "latencyP99"), " ms")
	}
	says(t, page, "a p99 of %s and %s ms", p99("128"), p99("12800"))
}

// The same of its clients and topologies.
func TestGalleryOfClients(t *testing.T) {
	const page, asItComes = "docs/gallery/client-drivers.md", "the same, `--driver GoRedis` as it comes"
	drivers := galleryTable(t, "client-drivers")
	slow, redis := drivers.number(t, "client=GoRedis", "outage"), drivers.number(t, "client=GoRedis", "probeOutage")
	says(t, page, "promoted the replica after %s to %s s", rounded(drivers.number(t, "client=Native", "probeOutage"), 2),
		rounded(redis, 2))
	says(t, page, "keeps the shard down %s times as long as Redis was: %.0f s", words[math.Round(slow/redis)], slow-redis)
	outage := tableAfter(t, "docs/measured-failovers.md", "## Results").number(t, asItComes, "client outage")
	says(t, page, "go-redis as it comes kept the shard down for %.0f s", outage)

	const limiterPage, one, pool = "docs/gallery/rate-limiter.md", "client=one-multiplexed", "client=pool-dedicated"
	limiter, medians := galleryTable(t, "rate-limiter"), tableAfter(t, limiterPage, "of the twelve runs (medians):")
	for _, client := range []string{"pool-dedicated", "one-multiplexed", "pool-multiplexed"} {
		if of, told := limiter.number(t, "client="+client, "latencyP50")*1e6,
			medians.number(t, client, "median latency"); math.Abs(of-told) > 0.5 {
			t.Errorf("the median latency of %s is %v and %v us", client, of, told)
		}
	}
	ratio := func(column string) float64 { return limiter.number(t, one, column) / limiter.number(t, pool, column) }
	says(t, limiterPage, "differ by %s times", rounded(ratio("throughput"), 2))
	says(t, limiterPage, "serves %s times as much as the pool of 200, with half of Redis' CPU, and with a lower p99",
		rounded(ratio("throughput"), 2))
	if rounded(ratio("maxCPU"), 1) != "0.5" || ratio("latencyP99") >= 1 {
		t.Errorf("the CPU is %v of that of the pool, the p99 %v", ratio("maxCPU"), ratio("latencyP99"))
	}

	failovers := galleryTable(t, "seven-failovers")
	lost := func(topology, commands string) string {
		return rounded(failovers.number(t, "topology="+topology+", change=primary-lost, commands="+commands,
			"probeOutage"), 1)
	}
	if lost("sentinel", "SET") != lost("sentinel", "SET+GET") {
		t.Error("the sentinels took different times")
	}
	says(t, "docs/gallery/seven-failovers.md", "about %s s with Sentinel, %s to %s s with Redis Cluster",
		lost("sentinel", "SET"), lost("cluster", "SET"), lost("cluster", "SET+GET"))
}

// The numbers of points and of losses are the sums of their tables.
func TestPointsOfCrashes(t *testing.T) {
	const page = "docs/crash-safety.md"
	sum := func(after, column string) (sum int) {
		for _, row := range tableAfter(t, page, after) {
			for _, n := range regexp.MustCompile(`\d+`).FindAllString(row[column], -1) {
				points, err := strconv.Atoi(n)
				if err != nil {
					t.Fatal(err)
				}
				sum += points
			}
		}
		return sum
	}
	says(t, page, "All %d points were reverted, without orphans", sum("Points by fault:", "points"))
	says(t, page, "Losses, 2026-11-30: all %d faults were reverted, without orphans.", sum("Losses, 2026-11-30", "faults"))
}

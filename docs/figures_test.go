package docs_test

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

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

// claims checks that a page has each of the texts, wherever its lines end.
func claims(t *testing.T, path string, texts ...string) {
	t.Helper()
	page := strings.Join(strings.Fields(plain(t, path)), " ")
	for _, text := range texts {
		if !strings.Contains(page, text) {
			t.Errorf("%s lacks %q, which its source says", path, text)
		}
	}
}

// What the page of the accuracy says of all outages is what the measured table has.
func TestAccuracy(t *testing.T) {
	measured := tableAfter(t, "docs/benchmarks.md", "<!-- accuracy:begin -->")
	const quiet, disturbed, within = "all, quiet", "all, disturbed", "truth within the bounds"
	outages := measured.number(t, quiet, "outages") + measured.number(t, disturbed, "outages")
	if right := measured.number(t, quiet, within) + measured.number(t, disturbed, within); right != outages {
		t.Errorf("%v of %v lie within the bounds, and the page says all", right, outages)
	}
	of := func(row, column string, digits int) string { return rounded(measured.number(t, row, column), digits) }
	claims(t, "docs/accuracy.md",
		fmt.Sprintf("All %.0f true lengths lie within the bounds, %s of them disturbed.", outages, measured.text(t, disturbed, "outages")),
		fmt.Sprintf("The median width is %s ms quiet and %s ms disturbed, and the median error of the figure itself %s and %s ms.", of(quiet, "median width ms", 2), of(disturbed, "median width ms", 2),
			of(quiet, "median error ms", 2), of(disturbed, "median error ms", 2)))
}

// The loads whose generator waited for a CPU are those of the unit test, with the bounds that it allows.
func TestStarvedLoads(t *testing.T) {
	given := map[string][]string{}
	for _, m := range regexp.MustCompile(`\{"(alone|beside one|beside three)", loop\{([\d_]+),.*, ([\d.]+)\},`).FindAllStringSubmatch(read(t, "internal/result/starved_test.go"), -1) {
		given[m[1]] = []string{strings.ReplaceAll(m[2], "_", ","), m[3]}
	}
	alone, one, three := given["alone"], given["beside one"], given["beside three"]
	if len(given) != 3 {
		t.Fatalf("%v", given)
	}
	claims(t, "docs/accuracy.md", fmt.Sprintf("%s/s alone, %s/s beside one program and %s/s beside three", alone[0], one[0], three[0]),
		fmt.Sprintf("at most %s, %s and %s times as high", alone[1], one[1], three[1]))
}

// How many runs without a loss leave how many with one is that formula of the page.
func TestRunsWithoutALoss(t *testing.T) {
	share := func(runs float64) float64 { return 100 * (1 - math.Pow(0.05, 1/runs)) }
	claims(t, "docs/statistics.md", fmt.Sprintf("up to 1 - 0.05^(1/n) of such runs with one (95 %%) [6]: %.0f %% of 6, %.0f %% of 20", share(6), share(20)))
}

// What is said of a day with 1,000 load pods is what the measured tables have.
func TestDay(t *testing.T) {
	day := tableAfter(t, "docs/benchmarks.md", "computed: the same with one every 0.1 s**")
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
	claims(t, "docs/benchmarks.md", fmt.Sprintf("At most %.0f MiB and %v of a core are computed in the runs below", memory, cores))
	const intervals = 1000 * 24 * 3600 * 10
	perInterval := tableAfter(t, "docs/benchmarks.md", "<!-- collect:begin -->").number(t, "the same per merged interval", "value")
	claims(t, "docs/benchmarks.md", fmt.Sprintf("record %d million intervals in 24 hours, about %s hours of CPU time to merge", intervals/1_000_000, map[float64]string{4: "four"}[math.Round(intervals*perInterval/1e6/3600)]))
}

// The run of the README has the same figures wherever it is told, and its statuses agree with themselves.
func TestRunOfTheReadme(t *testing.T) {
	var load v1alpha1.RedisLoadTestStatus
	var fault v1alpha1.RedisFaultStatus
	statusOf(t, "docs/redisloadtest.md", &load)
	statusOf(t, "docs/redisfault.md", &fault)
	i := fault.Impact
	span := func(b *v1alpha1.BoundedDuration) string {
		return format.Span(b.Value.Duration(), b.AtLeast.Duration(), b.AtMost.Duration())
	}
	dip, _ := i.Dip.Value.Number()
	if d := fault.Display; d.Outage != span(&i.Outage.BoundedDuration) || d.Recovery != span(i.RecoveryTime) || d.Dip != format.Share(dip) {
		t.Errorf("the columns are %+v of %+v", d, i)
	}
	for _, o := range fault.Objectives {
		figure := map[string]*v1alpha1.BoundedDuration{"maxOutage": &i.Outage.BoundedDuration, "maxRecoveryTime": i.RecoveryTime}[o.Name]
		if figure == nil || string(o.Actual) != strconv.FormatInt(int64(figure.Value), 10) || string(o.AtLeast) != strconv.FormatInt(int64(figure.AtLeast), 10) || string(o.AtMost) != strconv.FormatInt(int64(figure.AtMost), 10) {
			t.Errorf("%+v judges %+v", o, figure)
		}
	}
	if one := load.Faults[0]; *one.Outage != i.Outage.Value || *one.RecoveryTime != i.RecoveryTime.Value {
		t.Errorf("the load test has %+v", one)
	}
	apart := func(text string) string { return regexp.MustCompile(`(\d)(ms|s|%)`).ReplaceAllString(text, "$1 $2") }
	length := func(m v1alpha1.Microseconds) string { return format.Duration(m.Duration()) }
	claims(t, "docs/getting-started.md",
		"For "+apart(fault.Display.Outage)+" no request succeeded. The worst second had "+string(i.MinTPS)+" successes instead of "+string(i.BaselineTPS)+": a dip of "+apart(fault.Display.Dip)+".",
		apart(fault.Display.Recovery)+" after the kill the throughput was back",
		fmt.Sprintf("%d of %d requests failed, %s", load.Summary.Errors, load.Summary.Requests, apart(load.Display.Errors)),
		"p99 shows it: "+apart(load.Display.P99)+" over the whole run, "+apart(length(*i.LatencyP99.Before))+" before the fault")
	claims(t, "docs/measuring.md", "most of them answered up to "+rounded(load.Summary.MaxLag.Duration().Seconds(), 1)+" s late")
	injected, recovered := fault.Timeline[0], fault.Timeline[1]
	claims(t, "docs/faults/podkill.md",
		"0s Injected redis-0 "+injected.Message, fault.Display.Recovery+" FirstSuccess clients after "+fault.Display.Outage+" without one", fault.Display.Recovery+" Recovered clients "+recovered.Message,
		"ServerServes probe after "+length(i.Outages.Probe.Value)+" without a success")
}

// What is said of the run in the pictures of reports is in the file of which `make screenshots` takes them.
func TestRunOfThePictures(t *testing.T) {
	const path = "internal/report/run/testdata/demo.yaml"
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
	claims(t, "docs/reports.md", fmt.Sprintf("a redis-server whose pod was killed under %d requests a second", *load.Spec.Load.Rate),
		fmt.Sprintf("Nobody answered for %d ms, and %d of %d acknowledged writes were lost.", fault.Status.Impact.Outage.Value.Duration().Milliseconds(), *fault.Status.Impact.LostWrites, load.Status.Verification.Acknowledged))
}

// What is said of the demos follows from the objects that they run.
func TestDemos(t *testing.T) {
	var load v1alpha1.RedisLoadTest
	if err := yaml.Unmarshal([]byte(read(t, "config/samples/loadtest.yaml")), &load); err != nil {
		t.Fatal(err)
	}
	shape := &load.Spec.Load
	seconds := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + " s" }
	claims(t, "README.md", seconds(shape.RampUp.Duration+shape.WarmUp.Duration+shape.Duration.Duration)+" of which are the load", fmt.Sprintf("Two pods sent %d requests a second", *shape.Rate))
	claims(t, "docs/getting-started.md", fmt.Sprintf("sends %d requests a second from two pods: %s ramp-up, %s warm-up, %s measured", *shape.Rate, seconds(shape.RampUp.Duration), seconds(shape.WarmUp.Duration), seconds(shape.Duration.Duration)))
	if load.Spec.Pods.Count != 2 {
		t.Errorf("%d pods", load.Spec.Pods.Count)
	}

	var experiment v1alpha1.RedisExperiment
	if err := yaml.Unmarshal([]byte(read(t, "config/samples/experiment-benchmark.yaml")), &experiment); err != nil {
		t.Fatal(err)
	}
	spec := &experiment.Spec
	runs := int(spec.Repeat)
	for _, p := range spec.Matrix {
		runs *= max(len(p.Settings), len(p.Values))
	}
	m := regexp.MustCompile(`fsync +Running +(\d+)/(\d+) .* (\d+)m\n`).FindStringSubmatch(read(t, "docs/redisexperiment.md"))
	if m == nil || m[2] != strconv.Itoa(runs) {
		t.Fatalf("docs/redisexperiment.md shows %q, the experiment has %d runs", m, runs)
	}
	finished, _ := strconv.Atoi(m[1])
	after, _ := strconv.Atoi(m[3])
	minutes := after * runs / finished
	claims(t, "README.md", fmt.Sprintf("%d load tests in %d minutes", runs, minutes))
	claims(t, "Makefile", fmt.Sprintf("experiment-benchmark.html (%d minutes)", minutes))
	claims(t, "config/samples/experiment-benchmark.yaml", fmt.Sprintf("About %d minutes.", minutes))
}

// What is said of runs of the gallery is in their tables, and in the reports beside them.
func TestGallery(t *testing.T) {
	figures := func(page, entry string) table {
		return tableAfter(t, "docs/gallery/"+page+".md", "<!-- figures: "+entry+" ")
	}

	kill := figures("pod-kill-when-steady", "pod-kill-when-steady")
	outage := kill.text(t, "pod-kill", "outage")
	report := plain(t, "docs/gallery/reports/pod-kill-when-steady.md")
	phases, errors := tableAfter(t, "docs/gallery/reports/pod-kill-when-steady.md", "The parts of the recovery."), regexp.MustCompile(`; ([\d.]+ %) ended in an error`).FindStringSubmatch(report)
	if errors == nil {
		t.Fatal("the report has no share of errors")
	}
	failed := tableAfter(t, "docs/gallery/reports/pod-kill-when-steady.md", "### What became of the requests").number(t, "all", "Whole run")
	claims(t, "docs/gallery/pod-kill-when-steady.md", "after "+kill.text(t, "pod-kill", "recoveryTime")+", of which "+outage+" without a single answer",
		fmt.Sprintf("%s of all requests of the minute: %.0f failed", errors[1], failed), rounded(phases.number(t, "ContainerStarted", "Took"), 2)+" s passed until the container ran")
	claims(t, "README.md", "after "+outage+" without an answer")

	attach := figures("pvc-multi-attach", "pvc-multi-attach")
	claims(t, "docs/gallery/pvc-multi-attach.md", "stayed on the old node for 20 s", rounded(attach.number(t, "volume-left-behind", "recoveryTime")-20, 2)+" s together")

	drivers := figures("client-drivers", "client-drivers")
	slow, redis := drivers.number(t, "client=GoRedis", "outage"), drivers.number(t, "client=GoRedis", "probeOutage")
	measured := tableAfter(t, "docs/measured-failovers.md", "## Results")
	const asItComes = "the same, `--driver GoRedis` as it comes"
	claims(t, "docs/gallery/client-drivers.md",
		fmt.Sprintf("promoted the replica after %s to %s s", rounded(drivers.number(t, "client=Native", "probeOutage"), 2), rounded(redis, 2)),
		fmt.Sprintf("keeps the shard down %s times as long as Redis was: %.0f s", map[float64]string{5: "five"}[math.Round(slow/redis)], slow-redis),
		fmt.Sprintf("go-redis as it comes kept the shard down for %.0f s", measured.number(t, asItComes, "client outage")))

	deleted := figures("graceful-delete-loses-writes", "graceful-delete-loses-writes")
	claims(t, "docs/gallery/graceful-delete-loses-writes.md", fmt.Sprintf("at most %.0f ms without a success", 1000*deleted.number(t, "delete=graceful", "outage")))

	cache := figures("cache-before-and-after", "cache-before-and-after")
	before, with := cache.number(t, "backend=mariadb", "throughput"), cache.number(t, "backend=cached", "throughput")
	claims(t, "docs/gallery/cache-before-and-after.md", fmt.Sprintf("%.0f, %s: %s times", before, rounded(with, 2), rounded(with/before, 2)))

	starved := figures("starved", "starved")
	served := func(cpu string, bytes int) float64 {
		return starved.number(t, fmt.Sprintf("cpu=%s, bytes=%d, disk=slow", cpu, bytes), "throughput")
	}
	claims(t, "docs/gallery/starved.md", fmt.Sprintf("%.0f requests a second instead of %.0f with small values, %.0f and %.0f with large ones", served("0.1", 128), served("1", 128), served("0.1", 12800), served("1", 12800)),
		fmt.Sprintf("a p99 of %s and %s ms", rounded(1000*starved.number(t, "cpu=0.1, bytes=128, disk=fast", "latencyP99"), 3), rounded(1000*starved.number(t, "cpu=0.1, bytes=12800, disk=fast", "latencyP99"), 3)))
}

// The same of the comparisons of clients and of topologies.
func TestGalleryOfClients(t *testing.T) {
	limiter := tableAfter(t, "docs/gallery/rate-limiter.md", "<!-- figures: rate-limiter ")
	medians := tableAfter(t, "docs/gallery/rate-limiter.md", "of the twelve runs (medians):")
	for _, client := range []string{"pool-dedicated", "one-multiplexed", "pool-multiplexed"} {
		if of, told := limiter.number(t, "client="+client, "latencyP50")*1e6, medians.number(t, client, "median latency"); math.Abs(of-told) > 0.5 {
			t.Errorf("the median latency of %s is %v and %v us", client, of, told)
		}
	}
	const one, pool = "client=one-multiplexed", "client=pool-dedicated"
	times := rounded(limiter.number(t, one, "throughput")/limiter.number(t, pool, "throughput"), 2)
	claims(t, "docs/gallery/rate-limiter.md", "differ by "+times+" times", "serves "+times+" times as much as the pool of 200, with half of Redis' CPU, and with a lower p99")
	if share := limiter.number(t, one, "maxCPU") / limiter.number(t, pool, "maxCPU"); rounded(share, 1) != "0.5" || limiter.number(t, one, "latencyP99") >= limiter.number(t, pool, "latencyP99") {
		t.Errorf("the CPU is %v of that of the pool", share)
	}

	failovers := tableAfter(t, "docs/gallery/seven-failovers.md", "<!-- figures: seven-failovers ")
	lost := func(topology, commands string) string {
		return rounded(failovers.number(t, "topology="+topology+", change=primary-lost, commands="+commands, "probeOutage"), 1)
	}
	if lost("sentinel", "SET") != lost("sentinel", "SET+GET") {
		t.Error("the sentinels took different times")
	}
	claims(t, "docs/gallery/seven-failovers.md", fmt.Sprintf("about %s s with Sentinel, %s to %s s with Redis Cluster", lost("sentinel", "SET"), lost("cluster", "SET"), lost("cluster", "SET+GET")))
}

// The numbers of points and of losses are the sums of their tables.
func TestPointsOfCrashes(t *testing.T) {
	sum := func(after, column string) (sum int) {
		for _, row := range tableAfter(t, "docs/crash-safety.md", after) {
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
	claims(t, "docs/crash-safety.md", fmt.Sprintf("All %d points were reverted, without orphans", sum("Points by fault:", "points")),
		fmt.Sprintf("Losses, 2026-11-24: all %d faults were reverted, without orphans.", sum("Losses, 2026-11-24", "faults")))
}

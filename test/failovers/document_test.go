//go:build integration

package failovers

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/installed"
)

// machine describes the machine of the measurement.
type machine struct {
	date, system, memory, redis string
	loadBefore, loadAfter       string // averages over 1, 5, 15 minutes
}

func describeMachine() machine {
	m := machine{
		date:       time.Now().UTC().Format(time.DateOnly),
		system:     "unknown system",
		memory:     "unknown memory",
		redis:      "unknown",
		loadBefore: loadAverage(),
	}
	if text, err := os.ReadFile("/etc/os-release"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
				m.system = strings.Trim(name, `"`)
			}
		}
	}
	var info syscall.Sysinfo_t
	if syscall.Sysinfo(&info) == nil {
		m.memory = fmt.Sprintf("%d GiB", (info.Totalram*uint64(info.Unit)+1<<29)>>30)
	}
	server, _ := installed.Find("redis-server")
	if out, err := exec.Command(server, "--version").Output(); err == nil {
		for word := range strings.FieldsSeq(string(out)) {
			if version, ok := strings.CutPrefix(word, "v="); ok {
				m.redis = version
			}
		}
	}
	return m
}

func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:3], ", ")
}

const documentHead = `# Measured failovers

<!-- Written by make failovers. -->

Failovers of real processes, measured by ` + "`" + `redquake load --verify-writes` + "`" +
	`: acknowledged writes that were lost, errors, and the outage of the load's clients and of a new client.

## Method

` + "`" + `make failovers` + "`" + ` takes six minutes and writes this page. It needs ` + "`" + `redis-server` + "`" +
	` and ` + "`" + `redis-sentinel` + "`" + ` in ` + "`" + `PATH` + "`" + `, no cluster and no root.

- Real processes on loopback: a primary with two replicas, with or without three sentinels; a Cluster of three ` +
	`primaries with a replica each. No RDB and no AOF unless the row says so.
- ` + "`" + `redquake load` + "`" +
	` is a separate process: %[1]d requests/s in an open loop over %[2]d connections, for %[3]s; the failover begins ` +
	`after three seconds. Every request is a ledger write unless the row states otherwise.
- **acknowledged**, **lost**: ledger writes, read back after the load at the primary that the topology names then. ` +
	`**lost for**: from the acknowledgement of the first lost write to that of the last.
- **errors**: requests that failed, got no answer, or were not sent in time. In an open loop they grow with the outage.
- **client outage**: longest stretch without a success, in a Cluster of the worst shard. **server outage**: the ` +
	`same for the probe, 100 writes a second per shard, which redials; up to 20 ms too long, and shorter than the ` +
	`client outage if clients wait on dead connections.
- **earlier**: results of a small program with go-redis 9.23 and 16 to 24 workers that wrote unique keys as fast as ` +
	`they could, mostly in one run per row: acknowledged / lost / errors / longest gap.

**One run per row.** The size of a loss is an example, and a zero is no proof that nothing can be lost.

%[4]s, %[5]s, %[6]d cores, %[7]s, %[8]s, redis-server %[9]s. Load average %[10]s before and %[11]s after. Servers, ` +
	`sentinels and load share the cores; at a load average above %[6]d do not rely on milliseconds.

## Results

| failover | acknowledged | lost | lost for | errors | client outage | server outage | earlier |
| --- | --- | --- | --- | --- | --- | --- | --- |
`

const documentTail = `
## Losses and clients

%s
## Comparison with the earlier figures

- Earlier clients wrote as fast as they could, with one request per worker in flight. Here the rate is fixed and ` +
	`arrivals continue: the loss follows the rate, and an outage of 4 s has about 4 s times the rate in errors. Whether ` +
	`there is a loss, and for how long, compares.
- An earlier gap was that of the slowest worker. Here no connection to the shard had a success.
- Redquake's client subscribes to the sentinels and queries a Cluster's nodes when something breaks. The rows with ` +
	"`" + `GoRedis` + "`" + ` show a slower client: all its requests go to one key of the killed shard, without a ledger.
- If a primary is paused, Redquake's connections wait until the requests time out (1 s), even if the sentinels have ` +
	`named another primary meanwhile. The probe redials and is earlier.

## What this does not show

- Loss of a node or a disk: after kill -9 the page cache remains, so ` + "`" + `appendonly yes` + "`" +
	` prevents losses of a crashed process only.
- Partitions, other versions, Valkey. Kubernetes, where a Service may lead clients to the old primary for seconds: ` +
	`the worst case in the earlier measurement, 147,107 of 188,750 lost.
- Probability: after R runs without a loss, a failover may still lose writes with a probability of 3/R.
`

// document is the whole page.
func document(m machine, rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, documentHead, rate, connections, usual, m.date, m.system, runtime.NumCPU(), m.memory,
		runtime.Version(), m.redis, m.loadBefore, m.loadAfter)
	var words strings.Builder
	for _, r := range rows {
		fmt.Fprintln(&b, r.line())
		if text := r.compared(); text != "" {
			fmt.Fprintf(&words, "- %s: %s\n", r.name, text)
		}
	}
	fmt.Fprintf(&b, documentTail, words.String())
	return b.String()
}

// line is the row of the table.
func (r row) line() string {
	acknowledged, lost, lostFor := "no ledger", "-", "-"
	if v := r.run.Verification; r.share != "" {
		acknowledged, lost = count(v.Acknowledged), count(*v.Lost)
		if *v.Lost > 0 {
			lost, lostFor = "**"+lost+"**", rounded(v.LastLost-v.FirstLost)
		}
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s |", r.name, acknowledged, lost, lostFor, r.errorsByKind(),
		gap(r.clientGap()), gap(r.run.ProbeGap), r.before)
}

func (r row) errors() uint64 { return r.run.Total.Failed + r.run.Total.Unknown + r.run.Total.Dropped }

// errorsByKind is "88 (readonly 80, not sent 8)".
func (r row) errorsByKind() string {
	var kinds []string
	for _, e := range r.run.Errors {
		kinds = append(kinds, e.Class+" "+count(e.Count))
	}
	if n := r.run.Total.Dropped; n > 0 {
		kinds = append(kinds, "not sent "+count(n))
	}
	if len(kinds) == 0 {
		return "0"
	}
	return fmt.Sprintf("%s (%s)", count(r.errors()), strings.Join(kinds, ", "))
}

// clientGap is the longest stretch without a success at any shard.
func (r row) clientGap() *result.Gap {
	if g := r.run.LongestShardGap; g != nil {
		return &g.Gap
	}
	return r.run.LongestGap
}

func (e earlier) String() string {
	if e.words != "" {
		return e.words
	}
	return fmt.Sprintf("%s / %s / %s / %s", count(uint64(e.acked)), count(uint64(e.lost)), count(uint64(e.errors)), e.gap)
}

// compared describes the losses, and the difference from the earlier figures; "" if nothing was lost in either.
func (r row) compared() string {
	if r.share == "" {
		return r.comparedClients()
	}
	v := r.run.Verification
	lost, before := *v.Lost > 0, r.before.lost > 0
	switch {
	case !lost && before:
		return fmt.Sprintf("lost nothing; earlier %s were lost.", count(uint64(r.before.lost)))
	case !lost:
		return ""
	}
	text := fmt.Sprintf("lost writes acknowledged from %s to %s its begin", since(v.FirstLost, r.at),
		since(v.LastLost, r.at))
	if v.Errors == 0 {
		text += ", without an error of any client"
	} else {
		text += fmt.Sprintf(", with about %s errors meanwhile", count(v.Errors))
	}
	if !before {
		text += "; earlier nothing was lost"
	}
	return text + "."
}

func (r row) comparedClients() string {
	client, server := r.clientGap(), r.run.ProbeGap
	if client == nil || server == nil {
		return "no outage was measured, which must be an error."
	}
	return fmt.Sprintf("no reply for %s, %.1f times the server outage.", gap(client),
		float64(client.Length)/float64(server.Length))
}

func since(at result.Seconds, from time.Duration) string {
	d := (time.Duration(at) - from).Round(10 * time.Millisecond)
	if d < 0 {
		return format.Duration(-d) + " before"
	}
	return format.Duration(d) + " after"
}

func gap(g *result.Gap) string {
	switch {
	case g == nil:
		return "none"
	case g.Open:
		return "over " + rounded(g.Length)
	}
	return rounded(g.Length)
}

func rounded(s result.Seconds) string {
	return format.Duration(time.Duration(s).Round(time.Millisecond))
}

// count writes 12345 as 12,345.
func count(n uint64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

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
)

// machine is where it was measured.
type machine struct {
	date, system, memory, redis string
	loadBefore, loadAfter       string // averages over 1, 5, 15 minutes
}

func describeMachine() machine {
	m := machine{date: time.Now().UTC().Format(time.DateOnly), system: "unknown system", memory: "unknown memory", redis: "unknown", loadBefore: loadAverage()}
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
	if out, err := exec.Command("redis-server", "--version").Output(); err == nil {
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

What ` + "`redquake load --verify-writes`" + ` tells of failovers of real processes: how many acknowledged writes are gone afterwards, what clients saw meanwhile, and for how long
they, and a new client, got no answer.

## How it was measured

` + "`make failovers`" + ` does it again, in six minutes, and writes this page. It needs ` + "`redis-server` and `redis-sentinel`" + ` in ` + "`PATH`" + `, no cluster and no root.

- Real processes on loopback: a primary with two replicas, under three sentinels or by themselves; a Cluster of three primaries with a replica each. No RDB, no AOF where the row does
  not say so.
- ` + "`redquake load`" + ` is a process of its own: %[1]d requests/s in an open loop over %[2]d connections, for %[3]s. Every request is a ledger write where the row does not say otherwise. Three
  seconds after the load has begun the failover is begun.
- **acknowledged**, **lost**: ledger writes, read back after the load at the primary that the topology names then. **lost for** is the time from the acknowledgement of the first lost one to that of the
  last one, so lost / lost for is the rate of the writes.
- **errors**: requests of the load, ledger writes or not, that failed, got no answer, or were not sent before they had timed out. In an open loop requests fall due while nobody answers,
  so errors grow with the outage.
- **client outage**: longest stretch without a success, of the worst shard where there are several. **server outage**: the same for the probe, 100 writes a second per shard, which dials afresh while nobody
  answers. It is up to 20 ms longer than what it measures, and shorter than the client outage where clients wait on connections that are of no use any more.
- **earlier**: what a small program made for the purpose had found before, with go-redis 9.23, 16 to 24 workers that wrote unique keys as fast as they could, mostly in one run per row: acknowledged / lost / errors / longest gap.

**One run per row.** The size of a loss is an example; a zero means that none was seen, not that there can be none.

%[4]s, %[5]s, %[6]d cores, %[7]s, %[8]s, redis-server %[9]s. Load average %[10]s before and %[11]s after. Servers, sentinels and load share the cores; above %[6]d the machine was
busy with other things too, and milliseconds are not to be trusted.

## A run

| failover | acknowledged | lost | lost for | errors | client outage | server outage | earlier |
| --- | --- | --- | --- | --- | --- | --- | --- |
`

const documentTail = `
## What differs from the earlier figures

%s
Beside that, by how it is measured:

- Earlier clients wrote as fast as they could, here the rate is fixed. The loss follows the rate; what can be compared is whether there is one, and for how long writes were lost.
- Earlier errors were of workers that each waited for their own request. Here arrivals go on falling due, which is what users of a service do: an outage of 4 s has about 4 s times
  the rate in errors, less those that could still wait for their connection.
- A gap was that of the slowest worker; here a stretch counts only if no connection had a success, within a shard.
- Redquake's own client subscribes to the sentinels, and asks a Cluster's nodes when something breaks. A service's client may be slower: the rows with ` + "`GoRedis`" + ` show by how much. There
  all requests go to one key of the killed shard, which stays dead, and there is no ledger. What the client outage is longer by than the server outage is go-redis's.
- Where a primary is paused, Redquake's connections wait for the replies that it owes until the requests time out (1 s), also when the sentinels have named another one meanwhile. The probe
  dials afresh and is there earlier.

## What this does not show

- Loss of a node or of a disk: kill -9 leaves what was written in the page cache, so "` + "`appendonly yes`" + ` loses nothing" holds for a crashed process only.
- Partitions. Other versions than the one above, and Valkey. Kubernetes, where a Service may lead clients to the old primary for seconds: that is the worst case of all, 147,107 of 188,750 in the earlier measurement.
- How likely a loss is. After R runs without one the probability that a failover loses something may still be 3/R.
`

// document is the whole page.
func document(m machine, rows []row) string {
	var b strings.Builder
	fmt.Fprintf(&b, documentHead, rate, connections, usual, m.date, m.system, runtime.NumCPU(), m.memory, runtime.Version(), m.redis, m.loadBefore, m.loadAfter)
	var words strings.Builder
	for _, r := range rows {
		fmt.Fprintln(&b, r.line())
		fmt.Fprintf(&words, "- %s: %s\n", r.name, r.compared())
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
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s | %s |", r.name, acknowledged, lost, lostFor, r.errorsByKind(), gap(r.clientGap()), gap(r.run.ProbeGap), r.before)
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

// compared says what the row shows beside what was found earlier.
func (r row) compared() string {
	if r.share == "" {
		return r.comparedClients()
	}
	v := r.run.Verification
	lost, before := *v.Lost > 0, r.before.lost > 0
	var said string
	switch {
	case lost && before:
		said = "loses acknowledged writes, as before"
	case lost:
		said = fmt.Sprintf("lost %s, where nothing had been lost before", count(*v.Lost))
	case before:
		said = fmt.Sprintf("lost nothing, where %s had been lost before", count(uint64(r.before.lost)))
	default:
		said = "lost nothing, as before"
	}
	if lost {
		said += fmt.Sprintf(": those acknowledged from %s to %s the failover was begun", since(v.FirstLost, r.at), since(v.LastLost, r.at))
		if v.Errors == 0 {
			said += "; no client saw an error meanwhile"
		} else {
			said += fmt.Sprintf("; about %s requests erred meanwhile", count(v.Errors))
		}
	}
	if r.before.words == "" && r.before.errors == 0 && r.errors() > 0 {
		said += fmt.Sprintf(". There were %s errors in the run, and none before", count(r.errors()))
	}
	return said + "."
}

func (r row) comparedClients() string {
	client, server := r.clientGap(), r.run.ProbeGap
	if client == nil || server == nil {
		return "no outage was seen, which cannot be right."
	}
	return fmt.Sprintf("its users had no answer for %s, %.1f times as long as the server needed.", gap(client), float64(client.Length)/float64(server.Length))
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

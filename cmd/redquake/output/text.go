// Package output writes the result of a run as text and as JSON, for the command line.
package output

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/result"
)

// WriteText writes the result of a load as human-readable text.
func WriteText(w io.Writer, r *result.Load) error {
	var b strings.Builder
	head(&b, r)
	b.WriteByte('\n')
	if r.Search != nil {
		trials(&b, r.Search)
		b.WriteByte('\n')
	}
	b.WriteString(operations(r))
	if table := serverTable(r); table != "" {
		b.WriteByte('\n')
		b.WriteString(table)
	}
	if tail := tail(r); tail != "" {
		b.WriteByte('\n')
		b.WriteString(tail)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// head writes what was run, and the total figures.
func head(b *strings.Builder, r *result.Load) {
	outcome := string(r.Outcome)
	if r.Message != "" {
		outcome += ": " + r.Message
	}
	line(b, "Outcome", "%s", outcome)
	verdict(b, r)
	line(b, "Target", "%s", target(r.Target))
	if all := servers(r.Target); all != "" {
		line(b, "Servers", "%s", all)
	}
	line(b, "Load", "%s", r.Shape)
	if r.Search != nil {
		line(b, "Search", "%s", r.Search.Message)
	}
	measured := fmt.Sprintf("%s of %s", seconds(r.Measured), seconds(r.Elapsed))
	if r.Measured == r.Elapsed {
		measured = seconds(r.Elapsed)
	}
	if r.Elapsed < r.Planned && r.Search == nil { // a search may end before its maximum duration
		measured += ", planned " + seconds(r.Planned)
	}
	line(b, "Measured", "%s", measured)
	line(b, "Throughput", "%s/s", format.Rate(r.Total.Throughput))
	bad := r.Total.Failed + r.Total.Unknown + r.Total.Dropped
	if r.Total.Requests > 0 {
		line(b, "Errors", "%d of %d requests (%s)%s", bad, r.Total.Requests, format.Share(float64(bad)/float64(r.Total.Requests)), classes(r))
		samples(b, r)
	}
	switch r.Latency {
	case result.ResponseTime:
		line(b, "Latency", "response time, counted from the intended arrival (open loop); service time counts from the send")
	case result.ServiceTime:
		line(b, "Latency", "service time, counted from the send (closed loop)")
	}
}

// classes lists the errors by class.
func classes(r *result.Load) string {
	var parts []string
	for _, e := range r.Errors {
		parts = append(parts, fmt.Sprintf("%s %d", e.Class, e.Count))
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

// samples writes a message of the server for each class of errors that has one.
func samples(b *strings.Builder, r *result.Load) {
	for _, e := range r.Errors {
		if e.Sample != "" {
			line(b, "", "%s: %q", e.Class, e.Sample)
		}
	}
}

// operations returns the table of figures, beginning with the total.
func operations(r *result.Load) string {
	var t table
	t.row("OPERATION", "REQUESTS", "OK", "DRAINED", "FAILED", "UNKNOWN", "DROPPED", "OK/S", "P50", "P90", "P99", "P99.9", "MAX")
	rows := []result.Operation{r.Total}
	if len(r.Operations) > 1 {
		rows = append(rows, r.Operations...)
	} else if len(r.Operations) == 1 {
		rows = r.Operations // the total is the same
	}
	for _, o := range rows {
		t.operation(o.Name, o, o.Latency)
	}
	if r.Total.Service != nil {
		t.row("all, service", "", "", "", "", "", "", "")
		last := &t.rows[len(t.rows)-1]
		*last = append(*last, quantiles(r.Total.Service)...)
	}
	t.dropEmpty("DRAINED", "FAILED", "UNKNOWN", "DROPPED")
	return t.String()
}

func (t *table) operation(name string, o result.Operation, latency *result.Quantiles) {
	count := func(n uint64) string { return strconv.FormatUint(n, 10) }
	t.row(append([]string{
		name, count(o.Requests), count(o.OK), count(o.Drained), count(o.Failed), count(o.Unknown), count(o.Dropped), format.Rate(o.Throughput),
	}, quantiles(latency)...)...)
}

func quantiles(q *result.Quantiles) []string {
	if q == nil {
		return []string{"-", "-", "-", "-", "-"}
	}
	return []string{seconds(q.P50), seconds(q.P90), seconds(q.P99), seconds(q.P999), seconds(q.Max)}
}

// tail returns the lines below the table.
func tail(r *result.Load) string {
	var b strings.Builder
	if len(r.Workload) > 0 {
		var parts []string
		for _, f := range r.Workload {
			parts = append(parts, f.Name+" "+figure(f))
		}
		line(&b, "Workload", "%s", strings.Join(parts, ", "))
	}
	if len(r.Shards) > 0 {
		shards(&b, r)
	}
	if r.Trend != "" {
		line(&b, "Trend", "%s", r.Trend)
	}
	if r.MaxLag > 0 {
		line(&b, "Lag", "at most %s from an intended arrival to its send", seconds(r.MaxLag))
	}
	gaps(&b, r)
	stalls(&b, r)
	for _, a := range r.Anomalies {
		line(&b, "Anomaly", "throughput %s down for %s at %s", format.Share(a.Dip), seconds(a.Length), seconds(a.At))
	}
	if r.Verification != nil {
		verification(&b, r.Verification)
	}
	if r.Redis != nil {
		line(&b, "Redis", "%s", server(r.Redis))
	}
	if r.Target.NotObserved != "" {
		line(&b, "Unobserved", "%s", r.Target.NotObserved)
	}
	around(&b, r)
	if r.Bottleneck != nil {
		line(&b, "Bottleneck", "%s: %s", r.Bottleneck.Component, r.Bottleneck.Evidence)
	}
	for _, warning := range r.Warnings {
		line(&b, "Warning", "%s", warning)
	}
	for _, note := range r.Notes {
		line(&b, "Note", "%s", note)
	}
	return b.String()
}

// shardsShown is the number of shards in the text, those with the longest gaps first; JSON contains all.
const shardsShown = 16

func shards(b *strings.Builder, r *result.Load) {
	worst := slices.SortedStableFunc(slices.Values(r.Shards), func(a, b result.Shard) int { return cmp.Compare(b.LongestGap, a.LongestGap) })
	for _, s := range worst[:min(len(worst), shardsShown)] {
		longest := "no gap"
		if s.LongestGap > 0 {
			longest = "longest gap " + bounded(s.LongestGap, s.AtLeast, s.AtMost)
		}
		line(b, fmt.Sprintf("Shard %d", s.Shard), "%s/s, errors %d, %s", format.Rate(s.Throughput), s.Errors, longest)
	}
	if more := len(worst) - shardsShown; more > 0 {
		line(b, "Shards", "%d more, with shorter gaps", more)
	}
}

// gaps writes the longest gaps.
func gaps(b *strings.Builder, r *result.Load) {
	if g := r.LongestGap; g != nil {
		what := "longest stretch without a success"
		if g.Of != "" {
			what += " of " + strings.ToLower(g.Of)
		}
		line(b, "Gap", "%s", gap(g, what))
	}
	if g := r.LongestShardGap; g != nil {
		line(b, "Shard gap", "%s", gap(&g.Gap, fmt.Sprintf("longest stretch without a success at one shard, number %d", g.Shard)))
	}
	if r.ProbeGap != nil {
		line(b, "Probe gap", "%s", gap(r.ProbeGap, "the same for the probe, which opens new connections"))
	}
}

// stalls writes for how long the load generator did not run, and what the p99 can have been without that.
func stalls(b *strings.Builder, r *result.Load) {
	s, p99 := r.Total.Stalled, r.Total.Latency
	switch {
	case s == nil || s.Length == 0 && !s.Starved():
	case p99 == nil || s.Latency == nil || s.Latency.P99 == p99.P99:
		line(b, "Stalls", "%s", s)
	default:
		line(b, "Stalls", "%s; without these stalls the p99 would have been from %s to %s", s, seconds(s.Latency.P99), seconds(p99.P99))
	}
}

func gap(g *result.Gap, what string) string {
	end := ""
	if g.Open {
		end = ", not over when the run ended"
	}
	return fmt.Sprintf("%s at %s: %s%s", bounded(g.Length, g.AtLeast, g.AtMost), seconds(g.At), what, end)
}

// bounded is a duration with its uncertainty, unless it is exact, or a range if that is too great.
func bounded(value, atLeast, atMost result.Seconds) string {
	if format.IsUncertain(value.Seconds(), atLeast.Seconds(), atMost.Seconds()) {
		return format.Span(time.Duration(value), time.Duration(atLeast), time.Duration(atMost))
	}
	sign, off := format.Uncertainty(value.Seconds(), atLeast.Seconds(), atMost.Seconds())
	if sign == "" {
		return seconds(value)
	}
	return seconds(value) + " " + sign + format.Duration(time.Duration(math.Round(off*1e9)))
}

// target describes the deployment: its topology, the addresses that the load was given, and the server's version. A load of an API or a database may
// have none.
func target(t result.Target) string {
	given := t.Addresses
	if len(given) == 0 {
		given = t.Sentinels
	}
	if len(given) == 0 {
		return "none"
	}
	parts := []string{t.Topology + " at " + strings.Join(given, ",")}
	if t.Server != "" || t.Version != "" {
		parts = append(parts, strings.TrimSpace(t.Server+" "+t.Version))
	}
	return strings.Join(parts, ", ")
}

// serversShown is the number of servers in the text; JSON contains all.
const serversShown = 18

// servers lists the servers of a deployment by shard; "" if the address of the load is the only one.
func servers(t result.Target) string {
	if len(t.Servers) == 0 || len(t.Servers) == 1 && slices.Contains(t.Addresses, t.Servers[0].Address) && t.Servers[0].Role == "primary" {
		return ""
	}
	var b strings.Builder
	shard := -1
	for i, s := range t.Servers[:min(len(t.Servers), serversShown)] {
		switch {
		case s.Shard != nil && *s.Shard != shard:
			if i > 0 {
				b.WriteString("; ")
			}
			shard = *s.Shard
			fmt.Fprintf(&b, "shard %d: ", shard)
		case i > 0:
			b.WriteString(", ")
		}
		b.WriteString(strings.TrimSpace(s.Role + " " + s.Address))
	}
	if more := len(t.Servers) - serversShown; more > 0 {
		fmt.Fprintf(&b, "; %d more", more)
	}
	return b.String()
}

// server returns the server's figures in one line.
func server(r *result.Redis) string {
	var parts []string
	parts = append(parts, "CPU at most "+format.Millicores(float64(r.MaxCPU)/1000))
	if r.MaxMainThreadCPU > 0 {
		parts = append(parts, "its main thread "+format.Millicores(float64(r.MaxMainThreadCPU)/1000))
	}
	parts = append(parts, "memory at most "+format.Bytes(r.MaxMemory))
	for _, c := range []struct {
		count int64
		what  string
	}{{r.EvictedKeys, "evicted keys"}, {r.RejectedConnections, "rejected connections"}, {int64(r.Restarts), "restarts"}} {
		if c.count != 0 {
			parts = append(parts, fmt.Sprintf("%s %d", c.what, c.count))
		}
	}
	return strings.Join(parts, ", ")
}

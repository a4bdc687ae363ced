package output

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/redquake/redquake/internal/format"
	"github.com/redquake/redquake/internal/result"
)

// serverRowsShown is the number of servers in the text, in their order; JSON contains all.
const serverRowsShown = 16

// serverTable returns the table of what each server used over the measured time; "" without readings.
func serverTable(r *result.Load) string {
	if len(r.Servers) == 0 {
		return ""
	}
	var t table
	t.row("SERVER", "ROLE", "SHARD", "CPU", "MAIN THREAD", "MAX CPU", "MEMORY", "RSS", "IN/S", "OUT/S", "IO READS", "IO WRITES", "SLOW", "SLOWEST", "RESTARTS")
	for i := range r.Servers[:min(len(r.Servers), serverRowsShown)] {
		s := &r.Servers[i]
		shard, main := "", ""
		if s.Shard != nil {
			shard = strconv.Itoa(*s.Shard)
		}
		if s.MainThreadCPU != nil {
			main = millicores(s.MainThreadCPU.Mean)
		}
		slow, slowest := "", ""
		if s.SlowCommands != nil {
			slow = strconv.FormatInt(*s.SlowCommands, 10)
		}
		if len(s.Slowest) > 0 {
			slowest = s.Slowest[0].Command + " " + seconds(s.Slowest[0].Took)
		}
		t.row(s.Address, s.Role, shard, millicores(s.CPU.Mean), main, millicores(s.CPU.Max), format.Bytes(s.Memory), format.Bytes(s.RSS),
			format.Bytes(int64(s.BytesIn)), format.Bytes(int64(s.BytesOut)), threaded(s.IOThreadedReads), threaded(s.IOThreadedWrites),
			slow, slowest, strconv.Itoa(s.Restarts))
	}
	t.dropEmpty("ROLE", "SHARD", "MAIN THREAD", "IO READS", "IO WRITES", "SLOW", "SLOWEST", "RESTARTS")
	text := t.String()
	if more := len(r.Servers) - serverRowsShown; more > 0 {
		text += fmt.Sprintf("and %d more\n", more)
	}
	return text
}

// threaded returns a share of I/O threads; one of 0 is left out as an unknown one.
func threaded(share *float64) string {
	if share == nil || *share == 0 {
		return ""
	}
	return format.Share(*share)
}

func millicores(n int64) string { return format.Millicores(float64(n) / 1000) }

// around writes the round trip, and the CPU of the load and of the observed pods.
func around(b *strings.Builder, r *result.Load) {
	if t := r.RoundTrip; t != nil {
		var parts []string
		if t.Idle != nil {
			parts = append(parts, seconds(*t.Idle)+" before the load")
		}
		if t.UnderLoad != nil {
			parts = append(parts, seconds(*t.UnderLoad)+" under load")
		}
		if t.ShareOfLatency != nil { // of the shorter one
			parts = append(parts, "the network is "+format.Share(*t.ShareOfLatency)+" of the median latency")
		}
		line(b, "Round trip", "%s", strings.Join(parts, ", "))
	}
	if r.LoadPodCPU != nil {
		line(b, "Load CPU", "%s", cpu(r.LoadPodCPU))
	}
	for i := range r.Pods {
		p := &r.Pods[i]
		line(b, "Pods", "%s: %s, memory at most %s", p.Name, cpu(&p.CPU), format.Bytes(p.Memory))
	}
}

func cpu(c *result.CPU) string {
	text := fmt.Sprintf("%s on average, at most %s", millicores(c.Mean), millicores(c.Max))
	if c.Limit > 0 {
		text += " of " + millicores(c.Limit)
	}
	return text
}

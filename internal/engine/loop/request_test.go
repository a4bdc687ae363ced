package loop

import (
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/engine/socket"
	"github.com/redquake/redquake/internal/testing/builders"
)

// unwired is a loop with connections that are written to memory, and as many users.
func unwired(tb testing.TB, command []string, connections, pipeline int) *Loop {
	tb.Helper()
	p := builders.Plan()
	p.Pods, p.Client.Pipeline, p.Client.Connections, p.Shape.Users = 1, pipeline, connections, connections
	p.Workload.Commands = p.Workload.Commands[:1]
	p.Workload.Commands[0].Words = command
	l := New(stateOf(tb, p), 0, 1, int64(connections), func(int64) int { return pipeline })
	for _, c := range l.conns {
		c.up, c.pump = true, socket.NewIdlePump()
		c.release()
	}
	return l
}

// BenchmarkRequest is a request's way through the loop without the kernel's part: a wake-up reads the replies to a
// batch and writes the next one.
func BenchmarkRequest(b *testing.B) {
	commands := map[string]struct {
		words []string
		reply string
	}{
		"SET": {[]string{"SET", "{key}", "{value}"}, "+OK\r\n"},
		"GET": {[]string{"GET", "{key}"}, "$32\r\n" + strings.Repeat("x", 32) + "\r\n"},
	}
	const connections, pipeline = 50, 16
	for name, command := range commands {
		b.Run(name, func(b *testing.B) {
			l := unwired(b, command.words, connections, pipeline)
			replies := []byte(strings.Repeat(command.reply, pipeline))
			l.wakeUp()
			l.demand.issue(l.at)
			l.pump()
			l.sleep()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				l.wakeUp()
				c := l.conns[i%connections]
				c.pump.Discard()
				l.invalidateClock() // as reading does
				c.take(replies, 0)
				l.pump()
				l.sleep()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*pipeline), "ns/request")
		})
	}
}

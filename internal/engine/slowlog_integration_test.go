//go:build integration

package engine

import (
	"testing"
	"time"

	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// TestSlowLogOfRedis: a command that is slow 150 times a second does not hide one that is slow twice, and longer.
func TestSlowLogOfRedis(t *testing.T) {
	server := redistest.NewServer(t, redistest.Options{
		Config: []string{"slowlog-log-slower-than 2000", "enable-debug-command yes"},
	})
	p := realPlan(server.Address())
	p.Shape = plan.Shape{Rate: 150, Duration: 3 * time.Second}
	p.Workload.Commands = []plan.Command{{Name: "slow", Weight: 1, Words: []string{"DEBUG", "SLEEP", "0.003"}}}
	r := prepared(t, p)
	o, sink := collect(t)
	ended := make(chan error)
	go func() { ended <- r.Run(t.Context(), time.Now(), sink) }()
	const busy = "local function now() local t = redis.call('TIME') return t[1] * 1000000 + t[2] end local from = now() " +
		"while now() - from < 30000 do end"
	for range 4 {
		await.Pass(600*time.Millisecond, "the time between two slow scripts")
		if err := server.Client().Eval(t.Context(), busy, nil).Err(); err != nil && err.Error() != "redis: nil" {
			t.Error(err)
		}
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	slow := map[string]record.SlowCommand{} // on a busy machine others can be among them
	for _, s := range o.servers {
		for _, c := range s.SlowLog.Commands {
			c.Count += slow[c.Command].Count
			c.WorstMicros = max(c.WorstMicros, slow[c.Command].WorstMicros)
			slow[c.Command] = c
		}
	}
	if script, often := slow["EVAL"],
		slow["DEBUG"]; script.WorstMicros < 30_000 || script.Count < 3 || often.WorstMicros < 3000 || often.Count < 300 {
		t.Errorf("%+v", slow)
	}
}

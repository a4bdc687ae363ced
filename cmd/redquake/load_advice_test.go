package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/clitest"
	"github.com/redquake/redquake/internal/analysis/verdict"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/memnet"
	"github.com/redquake/redquake/internal/testing/memredis"
)

// A doubt about a load from this machine names the flags that were typed.
func TestDoubtOfQueueingUsersNamesFlags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := memnet.New()
		memredis.Start(t, network, inMemory, memredis.Options{Cost: time.Millisecond})
		out, _, _ := loadInMemory(t.Context(), t, network, "--users", "9", "--connections", "2", "--duration", "2s")
		r := clitest.Result(t, out)
		if len(r.Doubts) == 0 || r.Doubts[0].Reason != "UsersQueue" || !strings.HasSuffix(r.Doubts[0].Message, "; set --connections to 9, or fewer users") {
			t.Errorf("the doubts are %+v", r.Doubts)
		}
	})
}

// The verdict's own doubt of a stalled generator is about this process, and its advice about what can be changed here.
func TestDoubtOfAStalledProcess(t *testing.T) {
	run := &result.Load{Outcome: result.Finished, Bottleneck: &result.Bottleneck{Stalled: true}}
	run.Total = result.Operation{Requests: 10, OK: 10, Throughput: 10, Stalled: &result.Stalled{Length: 1e9, Count: 2, Longest: 6e8, Throughput: 100}}
	verdict.Load((*v1alpha1.Objectives)(nil), run)
	adviseFlags(run)
	if len(run.Doubts) != 1 || !strings.HasPrefix(run.Doubts[0].Message, "this process did not run for 1s of the measured time") ||
		!strings.HasSuffix(run.Doubts[0].Message, ". Use a machine that is less busy") {
		t.Errorf("the doubts are %+v", run.Doubts)
	}
}

//go:build integration

package failovers

import (
	"context"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// How each case is loaded in the long measurement.
const (
	rate        = 4000
	connections = 24
	lead        = 3 * time.Second  // of load before the failover
	usual       = 18 * time.Second // of load
)

// row is what came out of a case.
type row struct {
	failover
	run *result.Load
	at  time.Duration // when the failover was begun, from the load's start
}

// TestMeasureFailovers measures every case once, and writes docs/measured-failovers.md: REDQUAKE_FAILOVERS_OUT names
// the file. It takes six minutes.
func TestMeasureFailovers(t *testing.T) {
	file := os.Getenv("REDQUAKE_FAILOVERS_OUT")
	if file == "" {
		t.Skip("set REDQUAKE_FAILOVERS_OUT to the file of the document: make failovers")
	}
	here := describeMachine()
	var rows []row
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := measure(t, c)
			rows = append(rows, r)
			t.Logf("%s", r.line())
		})
	}
	here.loadAfter = loadAverage()
	if t.Failed() {
		t.Fatal("the document is not written: cases are missing")
	}
	if err := os.WriteFile(file, []byte(document(here, rows)), 0o644); err != nil {
		t.Fatal(err)
	}
}

func measure(t *testing.T, c failover) row {
	t.Helper()
	d := c.start(t)
	length := c.length
	if length == 0 {
		length = usual
	}
	args := slices.Concat(d.reach, c.flags, []string{
		"--rate", strconv.Itoa(rate), "--connections",
		strconv.Itoa(connections), "--duration", length.String(),
	})
	if c.share != "" {
		args = append(args, "--verify-writes", "--verify-share", c.share)
	}
	l := begin(t, d.watched, lead, args...)
	at := time.Now()
	d.fail()
	if d.restore != nil {
		await.Pass(d.restoreWait, "the length of the outage")
		d.restore()
	}
	r := row{failover: c, run: l.wait()}
	r.at = at.Sub(r.run.Start)
	if r.at < time.Second || r.at > length-5*time.Second {
		t.Fatalf("the failover came %s after the load's start of %s: the measurement is void", r.at, length)
	}
	if v := r.run.Verification; c.share != "" && (v == nil || v.Lost == nil) {
		t.Fatalf("the ledger was not read back: %+v\n%s", v, l.err.String())
	}
	return r
}

// A graceful failover of a shard loses nothing.
func TestClusterFailoverLosesNothing(t *testing.T) {
	t.Parallel()
	d := clusterFailover(t)
	l := begin(t, d.watched, 0,
		append(d.reach, "--rate", "1000", "--duration", "6s", "--verify-writes", "--verify-share", "100%")...)
	d.fail()
	r := l.wait()
	v := r.Verification
	if v == nil || v.Lost == nil || *v.Lost != 0 || v.Acknowledged == 0 || v.Replicas == 0 {
		t.Errorf("the verification is %+v, want acknowledged writes, none lost, and replicas\n%s", v, l.err.String())
	}
}

// A server without persistence restarts empty: all writes acknowledged before are lost, and none acknowledged
// afterwards.
func TestEmptiedServerLosesEverything(t *testing.T) {
	t.Parallel()
	s := redistest.NewServer(t, redistest.Options{})
	const conns = 10
	l := begin(t, s, 0, "--address", s.Address(), "--rate", "1000", "--connections", strconv.Itoa(conns), "--duration",
		"8s",
		"--verify-writes", "--verify-share", "25%")
	written := ledgerWrites(t, s)
	s.Kill()
	await.Pass(500*time.Millisecond, "the length of the outage")
	s.Restart()
	r := l.wait()
	v := r.Verification
	if v == nil || v.Lost == nil {
		t.Fatalf("the ledger was not read back: %+v\n%s", v, l.err.String())
	}
	// Of those that were applied before the kill, as many as there are connections may not have been answered.
	if *v.Lost+conns < written || written == 0 {
		t.Errorf("%d of %d are reported lost, and %d were applied before the kill", *v.Lost, v.Acknowledged, written)
	}
	if *v.Lost >= v.Acknowledged {
		t.Errorf("%d of %d are reported lost, although the server served again", *v.Lost, v.Acknowledged)
	}
	if bad := r.Total.Failed + r.Total.Unknown + r.Total.Dropped; bad == 0 {
		t.Error("no error is reported for a server that was down")
	}
}

// ledgerWrites is how many ledger writes a server has applied.
func ledgerWrites(t *testing.T, s *redistest.Server) uint64 {
	t.Helper()
	var n int64
	ctx := context.Background()
	for keys := s.Client().Scan(ctx, 0, "*ledger:*", 1000).Iterator(); keys.Next(ctx); {
		n += s.Do("bitcount", keys.Val()).(int64)
	}
	return uint64(n)
}

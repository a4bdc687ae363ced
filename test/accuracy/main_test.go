//go:build integration

// Package accuracy compares measured outages with planted ones of known length. It is a measurement of this machine, not a test: `make accuracy`.
package accuracy

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/engine"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// generatorPlan names the file of a plan: then this program is the load generator, a process of its own that can be kept from running. It writes the
// record beside the plan.
const generatorPlan = "REDQUAKE_ACCURACY_PLAN"

func TestMain(m *testing.M) {
	if file := os.Getenv(generatorPlan); file != "" {
		if err := generate(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(redistest.Run(m))
}

// generate runs the plan of a file. It prints a line when the load begins.
func generate(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var p plan.Plan
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	runner, err := engine.New(&p, 0)
	if err != nil {
		return err
	}
	if err := runner.Prepare(context.Background(), nil); err != nil {
		return err
	}
	start := time.Now().Add(100 * time.Millisecond)
	series := record.NewSeries(p.Run, start, p.Interval, p.Operations(), 1)
	fmt.Println("started")
	failed := error(nil)
	err = runner.Run(context.Background(), start, func(iv *record.Interval) {
		if err := series.Add(0, iv); err != nil {
			failed = err
		}
	})
	if err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	series.Finish(0)
	packed, err := series.Encode(0)
	if err != nil {
		return err
	}
	return os.WriteFile(file+".record", packed, 0o600)
}

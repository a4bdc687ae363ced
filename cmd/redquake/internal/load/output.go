package load

import (
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/run"
	"github.com/redquake/redquake/internal/result"
)

// thisMachine is what stands for the name of a load test in the report of a load that had none.
const thisMachine = "from this machine"

// reportOf makes the report of a load from this machine.
func reportOf(load *result.Load, series *merged.Series) *report.Document {
	return run.LoadTest(run.Input{Name: thisMachine, Load: load, Series: series})
}

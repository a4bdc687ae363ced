package loadflags

import (
	"github.com/spf13/cobra"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/internal/plan"
)

// Complete completes the values of flags that have some only.
func Complete(cmd *cobra.Command) {
	cli.Choices(cmd, "output", "text", "json")
	cli.Choices(cmd, "topology", string(plan.TopologyAuto), string(plan.TopologyStandalone),
		string(plan.TopologyReplication), string(plan.TopologySentinel), string(plan.TopologyCluster))
	cli.Choices(cmd, "read-from", string(plan.ReadPrimary), string(plan.ReadReplica),
		string(plan.ReadAny))
	cli.Choices(cmd, "mode", string(plan.Dedicated), string(plan.Multiplexed))
	var drivers []string
	for _, driver := range plan.Drivers() {
		drivers = append(drivers, string(driver))
	}
	cli.Choices(cmd, "driver", drivers...)
	cli.Choices(cmd, "arrivals", string(plan.Even), string(plan.Poisson))
	cli.Choices(cmd, "distribution", string(plan.Uniform), string(plan.Zipf), string(plan.Gaussian),
		string(plan.Sequential))
	cli.Choices(cmd, "probe-operation", string(v1alpha1.ProbeAuto), string(v1alpha1.ProbeWrite),
		string(v1alpha1.ProbeRead))
	cli.Choices(cmd, "interval", "50ms", "100ms", "200ms", "500ms", "1s")
	cli.Lists(cmd, "tests", plan.BenchmarkTests()...)
}

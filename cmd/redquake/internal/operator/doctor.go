// Package operator has the commands about the operator of a cluster: doctor and dashboard.
package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/doctor"
	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/cluster"
	"github.com/redquake/redquake/cmd/redquake/output"
	"github.com/redquake/redquake/internal/fault/declared"
)

const doctorHelp = `Check whether the cluster is ready for load tests and faults, and what each kind of fault needs.

It reads only: the version of Kubernetes; the kinds of redquake.dev, and whether they are those of
this program; the admission policies; the operator, its image, and whether it watches the namespace;
what you may do there (SelfSubjectAccessReview); the annotations that protect the namespace or stop
its faults; the policy of the cluster; nodes; storage classes whose volumes are attached to nodes;
metrics-server; Chaos Mesh and its version. Then, for each kind of fault: is it switched on,
permitted by the policy, to you, and to the operator, and is what it acts on there?

OK: it is there. Note: something does less than it could. Missing: it does not work; the detail says
what to do. Unknown: you may not ask. It does not look at a Redis: plan does, with a fault.

Exit codes:
  0    load tests can run, and so can each kind of fault that --fault names
  1    something that they need is missing
  3    the cluster does not answer`

const doctorExamples = `  # everything, for the namespace shop
  {name} doctor -n shop

  # in a pipeline: may this job kill pods here?
  {name} doctor -n shop --fault PodKill -o json`

// doctorFlags are the flags of `redquake doctor`.
type doctorFlags struct {
	cluster cluster.Flags
	output  string
	faults  []string
}

// NewDoctor returns the command doctor. name is that of the program, as users call it.
func NewDoctor(name string, io cli.Streams) *cobra.Command {
	var flags doctorFlags
	cmd := &cobra.Command{
		Use:     "doctor [flags]",
		Short:   "Check whether the cluster is ready, and what each kind of fault needs",
		Long:    doctorHelp,
		Example: strings.ReplaceAll(doctorExamples, "{name}", name),
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			wanted, err := flags.wanted()
			if err != nil {
				return err
			}
			return cli.AsFailure(flags.run(cmd.Context(), wanted, io))
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&flags.output, "output", "o", "text", "`format`: text or json")
	f.StringSliceVar(&flags.faults, "fault", nil,
		"`type` of fault that must be possible, such as PodKill; repeatable")
	cli.Choices(cmd, "output", "text", "json")
	var kinds []string
	for _, kind := range declared.Types() {
		kinds = append(kinds, string(kind))
	}
	cli.Lists(cmd, "fault", kinds...)
	flags.cluster.Register(f)
	return cmd
}

func (f *doctorFlags) wanted() (wanted []v1alpha1.FaultType, err error) {
	if f.output != "text" && f.output != "json" {
		return nil, fmt.Errorf("--output: %q is none of text and json", f.output)
	}
	known := declared.Types()
	for _, name := range f.faults {
		kind := v1alpha1.FaultType(name)
		if !slices.Contains(known, kind) {
			return nil, fmt.Errorf("--fault: %q is none of %v", name, known)
		}
		wanted = append(wanted, kind)
	}
	return wanted, nil
}

func (f *doctorFlags) run(ctx context.Context, wanted []v1alpha1.FaultType, io cli.Streams) error {
	client, err := f.cluster.Connect()
	if err != nil {
		return err
	}
	facts, err := doctor.Gather(ctx, client)
	if err != nil {
		return err
	}
	report := doctor.Judge(facts, wanted)
	if f.output == "json" {
		err = output.WriteJSON(io.Out, report)
	} else {
		err = output.WriteDoctor(io.Out, report)
	}
	if err != nil {
		return err
	}
	if !report.Ready {
		return &cli.Failure{Code: cli.ExitFailed}
	}
	return nil
}

// Package fill is the command that runs in the holder pods of faults of type DiskFull.
package fill

import (
	"encoding/json"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/internal/diskfill"
	"github.com/redquake/redquake/internal/diskfill/holder"
)

// New returns the command diskfill.
func New(io cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:    "diskfill",
		Short:  "Run in the holder pod of a RedisFault of type DiskFull: fill a volume, and free it again",
		Hidden: true,
		Args:   cobra.NoArgs,
	}
	cmd.AddCommand(serve(), verb(io, diskfill.VerbCheck, "Say whether the volume can be filled", true),
		verb(io, diskfill.VerbFill, "Fill the volume, and keep it full", true),
		verb(io, diskfill.VerbRelease, "Free the volume for ever", false),
		verb(io, diskfill.VerbShow, "Print how full the volume is", false))
	return cmd
}

func serve() *cobra.Command {
	return &cobra.Command{
		Use:   diskfill.VerbServe + " PATH",
		Short: "Wait for the other commands, and do to the volume at PATH what they say",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return holder.Serve(ctx, args[0])
		},
	}
}

func verb(io cli.Streams, name, short string, ordered bool) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs}
	if ordered {
		cmd.Use, cmd.Args = name+" CAPACITY LEAVE FOR", cobra.ExactArgs(3)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var order diskfill.Order
		if ordered {
			var err error
			if order, err = diskfill.ParseOrder(args); err != nil {
				return err
			}
		}
		state, err := holder.Ask(cmd.Context(), name, order)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(io.Out).Encode(state); err != nil {
			return fmt.Errorf("write the state: %w", err)
		}
		return nil
	}
	return cmd
}

package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// One asks for exactly one argument, which what describes.
func One(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return errors.New("name " + what)
		case 1:
			return nil
		}
		return fmt.Errorf("there are %d arguments: name %s only", len(args), what)
	}
}

// Some asks for one argument or more.
func Some(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New("name " + what)
		}
		return nil
	}
}

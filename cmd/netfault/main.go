//go:build linux

// Command netfault drops or delays packets of the pod in which it runs. The operator adds it to a pod as an
// ephemeral container with the capability NET_ADMIN, and then runs it there: package netfault has
// its arguments. As a file it has that capability as well, so that users other than root can run
// it: it is a program of its own as it cannot be started without.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/redquake/redquake/internal/netfault"
	"github.com/redquake/redquake/internal/netfault/kernel"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "netfault:", err)
		os.Exit(1)
	}
}

func run(arguments []string, output io.Writer) error {
	if len(arguments) == 0 {
		return fmt.Errorf("no verb: %s, %s, %s, %s, %s and %s are possible", netfault.VerbSleep,
			netfault.VerbTry, netfault.VerbHold, netfault.VerbRenew, netfault.VerbRelease, netfault.VerbShow)
	}
	switch verb, rest := arguments[0], arguments[1:]; verb {
	case netfault.VerbSleep:
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		<-ctx.Done()
		return nil
	case netfault.VerbTry:
		return act(output, rest, netfault.ParseRule, kernel.Try)
	case netfault.VerbHold:
		return act(output, rest, netfault.ParseRule, kernel.Hold)
	case netfault.VerbRenew:
		return act(output, rest, netfault.ParseRule, kernel.Renew)
	case netfault.VerbRelease:
		return act(output, rest, only, kernel.Release)
	case netfault.VerbShow:
		return act(output, rest, only, kernel.Show)
	default:
		return fmt.Errorf("%q is no verb", verb)
	}
}

// act does what the arguments ask for, and writes what the kernel does then.
func act[T any](
	output io.Writer, arguments []string, parse func([]string) (T, error),
	do func(T) (netfault.State, error),
) error {
	asked, err := parse(arguments)
	if err != nil {
		return err
	}
	state, err := do(asked)
	if err != nil {
		return err
	}
	return json.NewEncoder(output).Encode(state)
}

// only is the ID of a fault, without anything else.
func only(arguments []string) (string, error) {
	if len(arguments) != 1 {
		return "", errors.New("the ID of a fault is needed, and nothing else")
	}
	return arguments[0], nil
}

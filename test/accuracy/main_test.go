//go:build integration

// Package accuracy compares measured outages with planted ones of known length. It is a measurement of this machine,
// not a test: `make accuracy`.
package accuracy

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/engine"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/testing/redistest"
)

const (
	// generatorPlan names the file of a plan: then this program is the load generator, a process of its own that can be
	// kept from running. It writes the record beside the plan.
	generatorPlan = "REDQUAKE_ACCURACY_PLAN"
	// generatorPod is the number of a load pod: then it is this pod's agent, whose credentials are beside the plan, and it
	// is collected from.
	generatorPod = "REDQUAKE_ACCURACY_POD"
)

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

// generate runs the plan of a file until SIGTERM. It prints a line when the load begins.
func generate(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var p plan.Plan
	if err := json.Unmarshal(text, &p); err != nil {
		return err
	}
	if pod, err := strconv.Atoi(os.Getenv(generatorPod)); err == nil {
		return serve(&p, pod, file+credentialsSuffix)
	}
	runner, err := engine.New(&p, 0)
	if err != nil {
		return err
	}
	if err := runner.Prepare(context.Background(), nil); err != nil {
		return err
	}
	start := time.Now().Add(100 * time.Millisecond)
	series := merged.New(p.Run, start, p.Interval, p.Operations(), 1)
	series.SetReadOnly(p.ReadOnly())
	fmt.Println("started")
	failed := error(nil)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err = runner.Run(ctx, start, func(iv *record.Interval) {
		if err := series.Add(0, iv); err != nil {
			failed = err
		}
	})
	if err != nil && ctx.Err() == nil {
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
	return os.WriteFile(file+recordSuffix, packed, 0o600)
}

// What is beside the plan.
const (
	recordSuffix      = ".record"
	credentialsSuffix = ".credentials"
)

// serve runs a load pod's agent until its record was released. It prints its address in a line.
func serve(p *plan.Plan, pod int, credentialsFile string) error {
	text, err := os.ReadFile(credentialsFile)
	if err != nil {
		return err
	}
	var credentials agent.Credentials
	if err := json.Unmarshal(text, &credentials); err != nil {
		return err
	}
	certificate, err := credentials.Certificate()
	if err != nil {
		return err
	}
	runner, err := engine.New(p, pod)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	return agent.Serve(context.Background(), agent.Config{
		Plan: p, Pod: pod, Runner: runner, Token: credentials.Token, Certificate: certificate, Listener: listener,
		Logger: slog.New(slog.DiscardHandler),
	})
}

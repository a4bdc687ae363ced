package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/internal/agent"
	"github.com/redquake/redquake/internal/engine"
	"github.com/redquake/redquake/internal/plan"
)

// indexVariable is the environment variable that the Job controller sets in the pods of an Indexed
// Job.
const indexVariable = "JOB_COMPLETION_INDEX"

// agentFlags are the flags of `redquake agent`.
type agentFlags struct {
	plan        string
	credentials string
	listen      string
	index       int
	sidecar     agent.Sidecar
}

// NewAgent returns the command agent.
func NewAgent(io cli.Streams) *cobra.Command {
	var flags agentFlags
	cmd := &cobra.Command{
		Use:   "agent --plan FILE --credentials DIR",
		Short: "Run as a load pod: prepare the load, wait for the start, keep the record until it is pulled",
		Long: `Run as a load pod: prepare the load, wait for the start, keep the record until it is pulled.

The operator starts agents in the pods of a RedisLoadTest's Job; it is rarely called by hand. Passwords and certificates of
Redis are read from the files that the plan names. Logs are JSON on stderr.

Exit codes:
  0  the load finished and its record was collected
  1  the load failed or ended early, or its record was not collected
  3  a flag or a file is invalid`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cli.OutliveReaders()
			logger := slog.New(slog.NewJSONHandler(io.Err, nil))
			defer flags.sidecar.Quit(cmd.Context(), logger)
			config, err := flags.config(logger)
			if err != nil {
				return err
			}
			return serve(cmd.Context(), config)
		},
	}
	f := cmd.Flags()
	f.StringVar(&flags.plan, "plan", "", "`file` with the plan, as the operator wrote it (required)")
	f.StringVar(&flags.credentials, "credentials", "",
		"`directory` with tls.crt, tls.key and token of this run (required)")
	f.StringVar(&flags.listen, "listen", fmt.Sprintf(":%d", agent.Port),
		"`host:port` to serve HTTPS on")
	f.IntVar(&flags.index, "index", -1,
		"this pod's `number` within the run, from 0 (default $"+indexVariable+")")
	f.StringVar(&flags.sidecar.ReadyURL, "sidecar-ready", "",
		"`URL` at which a sidecar answers 2xx once the network works; the load begins then")
	f.StringVar(&flags.sidecar.QuitURL, "sidecar-quit", "",
		"`URL` to send POST to at the end, so that a sidecar ends as well")
	f.Lookup("index").DefValue = "0" // so that pflag adds no default to the one in the text
	for _, name := range []string{"plan", "credentials"} {
		_ = cmd.MarkFlagRequired(name) // fails only for a flag that does not exist
	}
	return cmd
}

// config returns the agent's configuration from the flags and the files that they name.
func (f *agentFlags) config(logger *slog.Logger) (agent.Config, error) {
	plan, err := readPlan(f.plan)
	if err != nil {
		return agent.Config{}, err
	}
	index, err := f.podIndex(plan.Pods)
	if err != nil {
		return agent.Config{}, err
	}
	credentials, err := readCredentials(f.credentials)
	if err != nil {
		return agent.Config{}, err
	}
	certificate, err := credentials.Certificate()
	if err != nil {
		return agent.Config{}, fmt.Errorf("--credentials %s: %w", f.credentials, err)
	}
	// the operator ends the wait, at spec.pods.startDeadline
	runner, err := engine.New(plan, index, engine.WithPatience(math.MaxInt64))
	if err != nil {
		return agent.Config{}, fmt.Errorf("--plan %s: %w", f.plan, err)
	}
	return agent.Config{
		Plan:        plan,
		Pod:         index,
		Runner:      watched(runner),
		Token:       credentials.Token,
		Certificate: certificate,
		Listen:      f.listen,
		Sidecar:     f.sidecar,
		Logger:      logger.With("run", plan.Run, "pod", index),
	}, nil
}

func serve(ctx context.Context, config agent.Config) error {
	config.Logger.Info("agent begins", "listen", config.Listen, "pods", config.Plan.Pods, "addresses",
		config.Plan.Target.Addresses)
	if err := agent.Serve(ctx, config); err != nil {
		config.Logger.Error("agent ends", "error", err.Error())
		return &cli.Failure{Code: cli.ExitFailed} // the error is in the log
	}
	config.Logger.Info("agent ends")
	return nil
}

// readPlan rejects unknown fields: an agent that ignores a field would run another load.
func readPlan(file string) (*plan.Plan, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--plan: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	plan := &plan.Plan{}
	if err := decoder.Decode(plan); err != nil {
		return nil, fmt.Errorf(
			"--plan %s: %w (is the agent's image of another version than the operator's?)", file, err)
	}
	return plan, nil
}

// podIndex returns --index, or the index set by the Job controller.
func (f *agentFlags) podIndex(pods int) (int, error) {
	index, from := f.index, "--index"
	if index < 0 {
		text := os.Getenv(indexVariable)
		if text == "" {
			return 0, errors.New("set --index or $" + indexVariable +
				" to the number of this pod within the run")
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return 0, fmt.Errorf("$%s: %q is not a number", indexVariable, text)
		}
		index, from = n, "$"+indexVariable
	}
	if index < 0 || index >= pods {
		return 0, fmt.Errorf("%s: %d must be between 0 and %d: the plan has %d pods", from, index, pods-1,
			pods)
	}
	return index, nil
}

func readCredentials(dir string) (agent.Credentials, error) {
	var c agent.Credentials
	var token []byte
	for key, into := range map[string]*[]byte{
		agent.KeyCertificate: &c.CertificatePEM,
		agent.KeyPrivateKey:  &c.PrivateKeyPEM,
		agent.KeyToken:       &token,
	} {
		text, err := os.ReadFile(filepath.Join(dir, key))
		if err != nil {
			return agent.Credentials{}, fmt.Errorf("--credentials: %w", err)
		}
		*into = text
	}
	c.Token = string(bytes.TrimSpace(token))
	return c, nil
}

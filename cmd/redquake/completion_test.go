package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/redquake/redquake/cmd/redquake/internal/cli"
)

// enumerations are the flags whose values are completed, with one of the values; of the others any text is a value.
var enumerations = map[string]string{
	"load --output":    "json",
	"load --topology":  "Cluster",
	"load --read-from": "Replica",
	"load --mode":      "Multiplexed",
	"load --driver":    "GoRedis",
	"load --interval":  "500ms",
	"load --arrivals":  "Poisson", "load --distribution": "Zipf", "load --probe-operation": "Read",
	"load --tests":     "lpush",
	"report --output":  "junit",
	"results --output": "csv",
	"compare --output": "markdown",
	"compare --figure": "latencyP99", "compare --margin": "throughput=", "compare --require": "NotWorse",
	"doctor --output": "json",
	"doctor --fault":  "PodKill",
}

// freeText are the flags of text that have no list of values.
var freeText = []string{
	"file", "record", "report", "hdr", "address", "host", "sentinel", "master-name", "sentinel-username",
	"sentinel-password-file", "username", "password-file", "dsn-file", "ca", "cert", "key", "server-name", "search",
	"search-precision", "min-throughput", "max-error-rate", "min-success", "command", "commands", "zipf-exponent",
	"gaussian-centre", "gaussian-deviation", "verify-share", "plan",
	"credentials", "listen", "sidecar-ready", "sidecar-quit", "namespace", "namespaces", "context", "kubeconfig", "at", "operation",
	"service-account", "operator-namespace", "name", "driver-option", "adapter",
}

// Every flag of text is completed, or listed as one that cannot be: a new one is neither until somebody decides.
func TestFlagValuesAreCompleted(t *testing.T) {
	found := map[string]bool{}
	for _, cmd := range newRoot("redquake", cli.Streams{}).Commands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			name := cmd.Name() + " --" + f.Name
			if want, ok := enumerations[name]; ok {
				found[name] = true
				_, out, _ := called("redquake", cobra.ShellCompNoDescRequestCmd, cmd.Name(), "--"+f.Name, "")
				if !slices.Contains(strings.Split(out, "\n"), want) {
					t.Errorf("%s is completed to %q, without %s", name, out, want)
				}
				return
			}
			isText := strings.HasPrefix(f.Value.Type(), "string")
			if isText && !slices.Contains(freeText, f.Name) && !(cmd.Name() == "report" && f.Name == "fault") {
				t.Errorf("%s has no completion of its values, and is not listed as a flag of any text", name)
			}
		})
	}
	for name := range enumerations {
		if !found[name] {
			t.Errorf("there is no flag %s", name)
		}
	}
}

// The last of several values is completed.
func TestListIsCompleted(t *testing.T) {
	_, out, _ := called("redquake", cobra.ShellCompNoDescRequestCmd, "load", "--tests", "set,lp")
	if !slices.Contains(strings.Split(out, "\n"), "set,lpush") {
		t.Errorf("set,lp is completed to %q", out)
	}
}

package loadflags

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/plan"
)

// groups are the groups of flags in the help, each with its title and the first of its flags in the
// order of registration.
var groups = []struct{ title, first string }{
	{"Input and output", "file"},
	{"Redis", "address"},
	{"Authentication and TLS", "username"},
	{"Load", "users"},
	{"Objectives", "min-throughput"},
	{"Requests", "command"},
	{"Client", "connections"},
	{"Probe and recording", "probe-rate"},
	{"Verification of acknowledged writes", "verify-writes"},
}

// helpWidth is the maximum width of the help's lines.
const helpWidth = 130

// Group lists the flags in the command's help under titles.
func Group(cmd *cobra.Command) {
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := fmt.Fprintf(cmd.OutOrStderr(), "Usage:\n  %s\n\nExamples:\n%s\n\n%s", cmd.UseLine(),
			cmd.Example, grouped(cmd.Flags()))
		return err
	})
}

func grouped(all *pflag.FlagSet) string {
	var b strings.Builder
	next := 0
	var group *pflag.FlagSet
	end := func() {
		if group != nil {
			b.WriteString(group.FlagUsagesWrapped(helpWidth))
		}
	}
	all.VisitAll(func(f *pflag.Flag) {
		if next < len(groups) && f.Name == groups[next].first {
			end()
			if next > 0 {
				b.WriteByte('\n')
			}
			fmt.Fprintf(&b, "%s:\n", groups[next].title)
			group = pflag.NewFlagSet("", pflag.ContinueOnError)
			group.SortFlags = false
			next++
		}
		if group != nil && f.Name != "help" { // obvious to the reader of the help
			group.AddFlag(f)
		}
	})
	end()
	return b.String()
}

// Flags are the flags of `redquake load`.
type Flags struct {
	file string
	Outputs
	where
	addresses                 []string
	username, passwordFile    string
	dsnFile                   string
	tls, insecure             bool
	ca, cert, key, serverName string
	database                  int32

	topology, masterName   string
	sentinels              []string
	sentinelUsername       string
	sentinelPasswordFile   string
	sentinelTLS            bool
	readFrom, mode, driver string
	driverOptions          []string
	adapter                string
	dialTimeout, timeout   time.Duration
	wait                   time.Duration
	connectionMaxAge       time.Duration
	retries                int32
	addedLatency           time.Duration

	users, rate               int32
	thinkTime, rampUp, warmUp time.Duration
	duration                  time.Duration
	requests                  int64
	connections, pipeline     int32
	resp2                     bool
	sent
	keys                    int64
	valueBytes              int32
	interval                time.Duration
	verify, staleReads      bool
	verifyShare             string
	search, searchPrecision string
	searchTrial             time.Duration
	dualPrimary             bool

	objectives

	draws

	unrecorded bool

	changed func(name string) bool // whether a flag was given
}

// Outputs are the flags of what is written.
type Outputs struct {
	Output string // text or json
	Record string // the file; "" = none
	Report string // the file; "" = none
	HDR    string // the file; "" = none
	Quiet  bool   // no progress
}

// sent are the flags of which requests are sent.
type sent struct {
	commands    []string
	commandFile string
	tests       string
}

// objectives are the flags of what a load must meet.
type objectives struct {
	minThroughput, maxErrorRate, minSuccess string
	maxP50, maxP99, maxP999                 time.Duration
	maxLostWrites                           int64
}

// PasswordVariable is the environment variable of the password, the same as for redis-cli: all
// users of the machine can read a command line.
const PasswordVariable = "REDISCLI_AUTH"

// Defaults without a file.
const (
	defaultAddress  = "127.0.0.1:6379"
	defaultUsers    = 50
	defaultDuration = 30 * time.Second
)

// applyTLS overrides the TLS settings with the flags.
func (f *Flags) applyTLS(to *plan.TLS) {
	to.CAFile, to.CertFile, to.KeyFile = f.ca, f.cert, f.key
	if f.changed("server-name") {
		to.ServerName = f.serverName
	}
	if f.changed("insecure") {
		to.InsecureSkipVerify = f.insecure
	}
}

// checkTLSSecrets returns an error for a Secret of the file that no flag replaces; field is the
// path of the TLS settings.
func (f *Flags) checkTLSSecrets(field string, tls *v1alpha1.RedisTLS) error {
	switch {
	case tls == nil:
		return nil
	case tls.CASecretRef != nil && f.ca == "" && !f.insecure:
		return fmt.Errorf("%s: %s.caSecretRef: Secrets are not read outside of a cluster: pass --ca",
			f.file, field)
	case tls.CertSecretRef != nil && f.cert == "":
		return fmt.Errorf(
			"%s: %s.certSecretRef: Secrets are not read outside of a cluster: pass --cert and --key", f.file,
			field)
	}
	return nil
}

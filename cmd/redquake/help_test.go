package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the golden files")

// called runs a command line in this process and returns its exit code, stdout and stderr.
func called(args ...string) (code int, out, err string) {
	var stdout, stderr bytes.Buffer
	code = execute(context.Background(), args, streams{in: strings.NewReader(""), out: &stdout, err: &stderr})
	return code, stdout.String(), stderr.String()
}

func TestHelp(t *testing.T) {
	for name, args := range map[string][]string{
		"help_root.txt":    {"redquake", "--help"},
		"help_load.txt":    {"redquake", "load", "--help"},
		"help_agent.txt":   {"redquake", "agent", "--help"},
		"help_results.txt": {"redquake", "results", "--help"},
		"help_kubectl.txt": {"/usr/local/bin/kubectl-redquake", "load", "--help"},
	} {
		t.Run(name, func(t *testing.T) {
			code, got, stderr := called(args...)
			if code != 0 || stderr != "" {
				t.Fatalf("exit code %d, stderr %q", code, stderr)
			}
			file := filepath.Join("testdata", name)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got, -update writes it:\n%s", diff)
			}
		})
	}
}

// The plugin's help shows only the name that kubectl users type.
func TestHelpOfThePlugin(t *testing.T) {
	_, help, _ := called("kubectl-redquake", "load", "--help")
	if rest := strings.ReplaceAll(help, "kubectl redquake load", ""); strings.Contains(rest, "redquake load") || !strings.Contains(help, "kubectl redquake load") {
		t.Errorf("the plugin's help is\n%s", help)
	}
}

func TestUsageErrors(t *testing.T) {
	for want, args := range map[string][]string{
		"redquake load: unknown flag: --user":                                          {"load", "--user", "5"},
		`redquake: unknown command "watch" for "redquake"`:                             {"watch"},
		`redquake load: unknown command "x" for "redquake load"`:                       {"load", "x"},
		`redquake load: invalid argument "many" for "--users" flag: strconv.ParseInt:`: {"load", "--users", "many"},
		`redquake agent: required flag(s) "credentials", "plan" not set`:               {"agent"},
		"redquake agent: --plan: open /does/not/exist: no such file or directory":      {"agent", "--plan", "/does/not/exist", "--credentials", "x"},
		`redquake load: --command "SET '": a quote is not closed`:                      {"load", "--command", "SET '"},
		"redquake load: --file: open /does/not/exist: no such file or directory":       {"load", "-f", "/does/not/exist"},
	} {
		code, stdout, stderr := called(append([]string{"redquake"}, args...)...)
		if code != exitError || stdout != "" || !strings.HasPrefix(stderr, want) || !strings.Contains(stderr, "--help'") {
			t.Errorf("%q: exit code %d, stdout %q, stderr\n%swant 2, nothing, and %s", args, code, stdout, stderr, want)
		}
	}
}

func TestVersion(t *testing.T) {
	code, stdout, stderr := called("redquake", "version")
	if code != 0 || !strings.HasPrefix(stdout, "redquake dev") || stderr != "" {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// The help of load lists every flag, under a title, and its examples use existing flags.
func TestHelpOfLoad(t *testing.T) {
	cmd := newLoad("redquake", streams{})
	_, help, _ := called("redquake", "load", "--help")
	for _, g := range loadFlagGroups {
		if strings.Count(help, "\n\n"+g.title+":\n") != 1 || cmd.Flags().Lookup(g.first) == nil {
			t.Errorf("the group %q, from --%s on, is not there", g.title, g.first)
		}
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if lines := strings.Count(help, " --"+f.Name+" "); lines == 0 && !f.Hidden && f.Name != "help" {
			t.Errorf("--%s is not in the help", f.Name)
		}
	})
	for word := range strings.FieldsSeq(loadExamples) {
		if name, ok := strings.CutPrefix(word, "--"); ok && cmd.Flags().Lookup(name) == nil {
			t.Errorf("an example uses --%s, which is no flag", name)
		}
	}
}

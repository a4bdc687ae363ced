package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/loadflags"
	"github.com/redquake/redquake/cmd/redquake/internal/words"
	"github.com/redquake/redquake/internal/engine"
	"github.com/redquake/redquake/internal/plan"
	"github.com/redquake/redquake/internal/testing/golden"
)

// called runs a command line in this process and returns its exit code, stdout and stderr.
func called(args ...string) (code int, out, err string) { return calledWith("", args...) }

func calledWith(in string, args ...string) (code int, out, err string) {
	var stdout, stderr bytes.Buffer
	code = execute(context.Background(), args, cli.Streams{In: strings.NewReader(in), Out: &stdout, Err: &stderr})
	return code, stdout.String(), stderr.String()
}

func TestHelp(t *testing.T) {
	for name, args := range map[string][]string{
		"help_root.txt":    {"redquake", "--help"},
		"help_load.txt":    {"redquake", "load", "--help"},
		"help_agent.txt":   {"redquake", "agent", "--help"},
		"help_report.txt":  {"redquake", "report", "--help"},
		"help_results.txt": {"redquake", "results", "--help"},
		"help_compare.txt": {"redquake", "compare", "--help"},
		"help_run.txt":     {"redquake", "run", "--help"},
		"help_watch.txt":   {"redquake", "watch", "--help"},
		"help_plan.txt":    {"redquake", "plan", "--help"},
		"help_rerun.txt":   {"redquake", "rerun", "--help"},
		"help_mark.txt":    {"redquake", "mark", "--help"},
		"help_stop.txt":    {"redquake", "stop", "--help"},
		"help_doctor.txt":  {"redquake", "doctor", "--help"},
		"help_kubectl.txt": {"/usr/local/bin/kubectl-redquake", "load", "--help"},
	} {
		t.Run(name, func(t *testing.T) {
			code, got, stderr := called(args...)
			if code != 0 || stderr != "" {
				t.Fatalf("exit code %d, stderr %q", code, stderr)
			}
			file := filepath.Join("testdata", name)
			golden.Compare(t, file, got)
		})
	}
}

// The plugin's help shows only the name that kubectl users type.
func TestHelpOfThePlugin(t *testing.T) {
	_, help, _ := called("kubectl-redquake", "load", "--help")
	if rest := strings.ReplaceAll(help, "kubectl redquake load", ""); strings.Contains(rest, "redquake load") ||
		!strings.Contains(help, "kubectl redquake load") {
		t.Errorf("the plugin's help is\n%s", help)
	}
}

func TestUsageErrors(t *testing.T) {
	for want, args := range map[string][]string{
		"redquake load: unknown flag: --user; here: --username\n":              {"load", "--user", "5"},
		"redquake load: unknown flag: --pasword; did you mean --password":      {"load", "--pasword", "5"},
		"redquake load: unknown flag: --durration; did you mean --durati":      {"load", "--durration", "5s"},
		"redquake load: unknown flag: --clients; here: --users (each has":      {"load", "--clients", "5"},
		"redquake load: unknown shorthand flag: 'l' in -l; here: --durat":      {"load", "-l"},
		"redquake load: unknown flag: --nosuchthing\nSee":                      {"load", "--nosuchthing"},
		`redquake: unknown command "look" for "redquake"`:                      {"look"},
		"redquake load: only one argument, the address of Redis, is poss":      {"load", "x", "y"},
		`redquake load: --users: "many" must be a whole number`:                {"load", "--users", "many"},
		`redquake load: --duration: "5" must be a duration with its unit: 5s?`: {"load", "--duration", "5"},
		`redquake load: --duration: "x" must be a duration, as 1m30s`:          {"load", "--duration", "x"},
		`redquake load: --duration: "9999999h" must be a shorter duration`:     {"load", "--duration", "9999999h"},
		`redquake load: --rate: "9G" must be requests per second from 1/h`:     {"load", "--rate", "9G"},
		`redquake load: --rate: "9000M" must be requests per second from 1/h`:  {"load", "--rate", "9000M"},
		`redquake agent: required flag(s) "credentials", "plan" not set`:       {"agent"},
		"redquake agent: --plan: open /does/not/exist: no such file or directory": {
			"agent", "--plan", "/does/not/exist",
			"--credentials", "x",
		},
		`redquake load: --command "SET '": a quote is not closed`:                {"load", "--command", "SET '"},
		"redquake load: --file: open /does/not/exist: no such file or directory": {"load", "-f", "/does/not/exist"},
	} {
		code, stdout, stderr := called(append([]string{"redquake"}, args...)...)
		if code != cli.ExitError || stdout != "" || !strings.HasPrefix(stderr, want) || !strings.Contains(stderr, "--help'") {
			t.Errorf("%q: exit code %d, stdout %q, stderr\n%swant 3, nothing, and %s", args, code, stdout, stderr, want)
		}
	}
}

// Whatever is wrong with a command line, its password is not repeated.
func TestErrorsRepeatNoPassword(t *testing.T) {
	const uri = "redis://app:geheim@redis-0:6379/0"
	for _, args := range [][]string{
		{uri},
		{"load", uri, "x"},
		{"load", uri, "--nosuch"},
		{"load", uri, "--duration", "1"},
		{"load", "--rate", uri},
		{"load", uri, "--address", "x"},
		{"load", "-a", "geheim"},
		{"load", "-ageheim"},
		{"load", "--pass", "geheim"},
		{"load", uri + "x"},
		{"load", "--sentinel", uri},
		{"load", uri, "--sentinel", "x"},
		{"results", uri},
		{"report", uri},
		{"load", "-f", uri},
		{"load", uri, "--tls", "--ca", "/does/not/exist", "--wait", "0"},
		{"run", "-f", uri},
	} {
		code, stdout, stderr := called(append([]string{"redquake"}, args...)...)
		if code == 0 || strings.Contains(stdout+stderr, "geheim") || stderr == "" {
			t.Errorf("%q: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
}

func TestVersion(t *testing.T) {
	for _, how := range []string{"version", "--version"} {
		code, stdout, stderr := called("redquake", how)
		if code != 0 || !strings.HasPrefix(stdout, "redquake dev") || strings.Count(stdout, "\n") != 1 || stderr != "" {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q", how, code, stdout, stderr)
		}
	}
}

// examplesOf returns the arguments of each example in a command's help that calls redquake.
func examplesOf(t *testing.T, text string) (list [][]string) {
	t.Helper()
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		words, err := words.Split(strings.TrimSpace(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if len(words) == 0 || words[0] != "redquake" {
			continue // a comment, or another program
		}
		if to := slices.Index(words, ">"); to > 0 {
			words = words[:to]
		}
		list = append(list, words[1:])
	}
	return list
}

// planned is the plan of a load with these arguments.
func planned(args []string) (*plan.Plan, error) {
	var flags loadflags.Flags
	set := pflag.NewFlagSet("load", pflag.ContinueOnError)
	flags.Register(set)
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	if err := flags.Check(); err != nil {
		return nil, err
	}
	test, err := flags.LoadTest(cli.Streams{In: strings.NewReader(""), Err: io.Discard})
	if err != nil {
		return nil, err
	}
	plan, _, err := flags.Plan(test)
	return plan, err
}

// Every example of every command can be run: of a load, the plan is made from the files that it names.
func TestExamples(t *testing.T) {
	t.Setenv(loadflags.PasswordVariable, "")
	t.Chdir("../..")
	password := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, n := newRoot("redquake", cli.Streams{}), 0
	for _, cmd := range root.Commands() {
		for _, args := range examplesOf(t, cmd.Example) {
			n++
			args = slices.Clone(args)
			if at := slices.Index(args, "--password-file"); at >= 0 {
				args[at+1] = password
			}
			if cmd, _, err := root.Find(args); err != nil || cmd.ParseFlags(args[1:]) != nil ||
				cmd.ValidateArgs(cmd.Flags().Args()) != nil {
				t.Errorf("%q: %v", args, errors.Join(err, cmd.ParseFlags(args[1:]), cmd.ValidateArgs(cmd.Flags().Args())))
				continue
			}
			if file := args[len(args)-1]; args[0] == "compare" && strings.HasPrefix(file, "config/") {
				if _, out, stderr := called(append([]string{"redquake"}, args...)...); stderr != "" ||
					!strings.Contains(out, " runs, compared with ") {
					t.Errorf("%q: %s", args, stderr)
				}
			}
			if args[0] != "load" {
				continue
			}
			plan, err := planned(args[1:])
			if err == nil {
				_, err = engine.New(plan, 0)
			}
			if err != nil {
				t.Errorf("%q: %v", args, err)
			}
		}
	}
	if n < 12 {
		t.Errorf("%d examples", n)
	}
}

// The load agent is this program, too: it must not link what registers every kind of Kubernetes at its start.
func TestLinksNoClientsets(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := strings.Fields(string(out))
	if len(linked) < 100 || !slices.Contains(linked, "k8s.io/client-go/dynamic") {
		t.Fatalf("go list names %d packages", len(linked))
	}
	for _, path := range linked {
		if path == "github.com/redquake/redquake/internal/fault/declared" { // which is pure
			continue
		}
		for _, forbidden := range []string{
			"k8s.io/client-go/kubernetes", "k8s.io/client-go/discovery",
			"sigs.k8s.io/controller-runtime", "github.com/redquake/redquake/internal/testing",
			"github.com/redquake/redquake/internal/fault",
		} {
			if path == forbidden || strings.HasPrefix(path, forbidden+"/") {
				t.Errorf("links %s", path)
			}
		}
	}
}

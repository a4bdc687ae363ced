package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// gallery runs entries in a cluster.
type gallery struct {
	kubectl, redquake string
	manifests, out    string
	operator          string // manifests of the Redis operator; "" = the cluster has it
}

// Verdicts of what has none of its own.
const (
	notRun    = "NotRun"
	regressed = "Regressed"
)

// exitNotPassed are the exit codes of redquake run for the verdicts Fail and Inconclusive: there is
// a report of them.
var exitNotPassed = map[int]bool{1: true, 2: true}

// runEntry runs an entry, and keeps its report and its objects. The row is as complete as possible,
// also with an error.
func (g *gallery) runEntry(ctx context.Context, e entry, keep bool) (row, error) {
	r := row{Name: e.name, Verdict: notRun, Figure: e.figure}
	namespace := "gallery-" + e.name
	fmt.Printf("\n== %s, in namespace %s\n", e.name, namespace)
	if err := g.makeNamespace(ctx, namespace, e.privileged); err != nil {
		return r, err
	}
	if !keep {
		defer func() {
			if err := g.kube(context.WithoutCancel(ctx), "delete", "namespace", namespace,
				"--wait=false"); err != nil {
				fmt.Fprintln(os.Stderr, "gallery:", err)
			}
		}()
	}
	undo, err := g.prepare(ctx, e)
	defer undo()
	if err != nil {
		return r, err
	}
	regression, ran := g.run(ctx, namespace, e)
	if err := errors.Join(ran, g.keep(ctx, namespace, e), g.plan(ctx, namespace, e)); err != nil {
		return r, err
	}
	found, err := readReport(g.file(e, ".json"))
	if err != nil {
		return r, err
	}
	r.Verdict = found.Verdict
	if e.planted != "" {
		r.Verdict, r.Value = regressed, regression
		return r, nil
	}
	r.Value, err = e.value(found)
	return r, err
}

// run runs an entry to its end, whatever its verdict. It returns the regression that a schedule has
// found.
func (g *gallery) run(
	ctx context.Context, namespace string, e entry,
) (regression string, err error) {
	if e.planted != "" {
		return g.runSchedule(ctx, namespace, e)
	}
	err = g.command(ctx, g.redquake, "run", "-n", namespace, "-f", filepath.Join(g.manifests, e.name),
		"--plain")
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exitNotPassed[exit.ExitCode()] {
		return "", nil
	}
	return "", err
}

func (g *gallery) file(e entry, extension string) string {
	return filepath.Join(g.out, e.name+extension)
}

// makeNamespace makes a new namespace, instead of one that an earlier run has left.
func (g *gallery) makeNamespace(ctx context.Context, namespace string, privileged bool) error {
	level := "restricted"
	if privileged {
		level = "privileged"
	}
	for _, words := range [][]string{
		{"delete", "namespace", namespace, "--ignore-not-found", "--timeout=5m"},
		{"create", "namespace", namespace},
		{"label", "namespace", namespace, "pod-security.kubernetes.io/enforce=" + level},
	} {
		if err := g.kube(ctx, words...); err != nil {
			return err
		}
	}
	return nil
}

// prepare makes what an entry needs of the cluster beside its namespace. The function that it
// returns takes that away again, also after an error.
func (g *gallery) prepare(ctx context.Context, e entry) (undo func(), err error) {
	removeZones := func() {}
	if e.zones {
		if removeZones, err = g.makeZones(ctx); err != nil {
			return removeZones, err
		}
	}
	if !e.operator || g.operator == "" {
		return removeZones, nil
	}
	return func() {
		g.removeOperator(context.WithoutCancel(ctx))
		removeZones()
	}, g.installOperator(ctx)
}

// installOperator installs the Redis operator, and waits until it runs.
func (g *gallery) installOperator(ctx context.Context) error {
	if err := g.kube(ctx, "apply", "--server-side", "-f", g.operator); err != nil {
		return err
	}
	return g.kube(ctx, "-n", operatorNamespace, "rollout", "status", "deployment",
		"--timeout=2m")
}

// removeOperator removes it with its CRD, and so every Redis that it has made.
func (g *gallery) removeOperator(ctx context.Context) {
	if err := g.kube(ctx, "delete", "--ignore-not-found", "--timeout=5m", "-f",
		g.operator); err != nil {
		fmt.Fprintln(os.Stderr, "gallery:", err)
	}
}

// operatorNamespace is that of config/gallery/bases/redis-operator.
const operatorNamespace = "redis-operator"

// zoneLabel is the well-known label of a node for its zone.
const zoneLabel = "topology.kubernetes.io/zone"

// makeZones makes a zone of each node, named zone-NODE, unless the nodes have zones. The function
// that it returns removes them.
func (g *gallery) makeZones(ctx context.Context) (remove func(), err error) {
	there, err := g.query(ctx, "get", "nodes", "-l", zoneLabel, "-o", "name")
	if err != nil || there != "" {
		return func() {}, err
	}
	nodes, err := g.query(ctx, "get", "nodes", "-o", "jsonpath={.items[*].metadata.name}")
	if err != nil {
		return func() {}, err
	}
	for _, node := range strings.Fields(nodes) {
		err = errors.Join(err, g.kube(ctx, "label", "node", node, zoneLabel+"=zone-"+node))
	}
	return func() {
		if err := g.kube(context.WithoutCancel(ctx), "label", "nodes", "--all",
			zoneLabel+"-"); err != nil {
			fmt.Fprintln(os.Stderr, "gallery:", err)
		}
	}, err
}

// keep writes the reports of an entry, and all of its objects, with the records of its runs.
func (g *gallery) keep(ctx context.Context, namespace string, e entry) error {
	var errs []error
	for form, extension := range map[string]string{
		"html":     ".html",
		"markdown": ".md",
		"json":     ".json",
	} {
		errs = append(errs, g.output(ctx, g.file(e, extension), g.redquake, "report", e.object, "-n",
			namespace, "-o", form))
	}
	return errors.Join(append(errs,
		g.output(ctx, g.file(e, ".yaml"), g.kubectl, "-n", namespace, "get",
			"redisexperimentschedules,redisexperiments,redisloadtests,redisfaults,configmaps", "-o",
			"yaml"))...)
}

// plan keeps why an entry's other file is refused.
func (g *gallery) plan(ctx context.Context, namespace string, e entry) error {
	if e.refused == "" {
		return nil
	}
	words := []string{"plan", "-n", namespace, "-f", e.refused}
	out, err := commandOf(ctx, g.redquake, words).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 3 || len(out) == 0 {
		return errors.Join(fmt.Errorf("%s was not refused:\n%s", e.refused, out),
			explain(err, g.redquake, words))
	}
	fmt.Printf("\n%s", out)
	return os.WriteFile(g.file(e, ".refused.txt"), out, 0o644)
}

// runSchedule lets two runs of a schedule pass, plants a change, and waits until it is found. It
// returns what the condition Regressed says.
func (g *gallery) runSchedule(ctx context.Context, namespace string, e entry) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	if err := g.kube(ctx, "-n", namespace, "apply", "-k",
		filepath.Join(g.manifests, e.name)); err != nil {
		return "", err
	}
	query := func(path string) func() (string, error) {
		return func() (string, error) {
			return g.query(ctx, "-n", namespace, "get", e.object, "-o", "jsonpath="+path)
		}
	}
	if _, err := await(ctx, "two runs", func() (string, error) {
		verdicts, err := query("{.status.history[*].verdict}")()
		if len(strings.Fields(verdicts)) < 2 {
			return "", err
		}
		return verdicts, err
	}); err != nil {
		return "", err
	}
	if err := g.kube(ctx, "-n", namespace, "apply", "-f", e.planted); err != nil {
		return "", err
	}
	return await(ctx, "a regression", func() (string, error) {
		condition, err := query(
			`{range .status.conditions[?(@.type=="Regressed")]}{.status} {.message}{end}`)()
		message, ok := strings.CutPrefix(condition, "True ")
		if !ok {
			return "", err
		}
		return message, err
	})
}

// await asks until there is an answer.
func await(ctx context.Context, what string, ask func() (string, error)) (string, error) {
	fmt.Printf("waiting for %s\n", what)
	for {
		if answer, err := ask(); err != nil || answer != "" {
			return answer, err
		}
		select {
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
			return "", fmt.Errorf("no %s: %w", what, ctx.Err())
		}
	}
}

func (g *gallery) kube(ctx context.Context, words ...string) error {
	return g.command(ctx, g.kubectl, words...)
}

// command runs a program that writes what it does.
func (g *gallery) command(ctx context.Context, program string, words ...string) error {
	c := commandOf(ctx, program, words)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	return explain(c.Run(), program, words)
}

// query returns what kubectl writes.
func (g *gallery) query(ctx context.Context, words ...string) (string, error) {
	var out bytes.Buffer
	c := commandOf(ctx, g.kubectl, words)
	c.Stdout, c.Stderr = &out, os.Stderr
	err := c.Run()
	return strings.TrimSpace(out.String()), explain(err, g.kubectl, words)
}

// output writes what a program writes to a file.
func (g *gallery) output(ctx context.Context, file, program string, words ...string) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	c := commandOf(ctx, program, words)
	c.Stdout, c.Stderr = out, os.Stderr
	if err := errors.Join(c.Run(), out.Close()); err != nil {
		return errors.Join(explain(err, program, words), os.Remove(file))
	}
	return nil
}

// commandOf is a command that is interrupted, not killed, at the end of ctx: redquake run then
// aborts what it has begun.
func commandOf(ctx context.Context, program string, words []string) *exec.Cmd {
	c := exec.CommandContext(ctx, program, words...)
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 2 * time.Minute
	return c
}

func explain(err error, program string, words []string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", filepath.Base(program), strings.Join(words, " "), err)
}

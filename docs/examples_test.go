package docs_test

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/crontab"
	"github.com/redquake/redquake/internal/experiment"
	"github.com/redquake/redquake/internal/fault"
	"github.com/redquake/redquake/internal/fault/contract"
	"github.com/redquake/redquake/internal/manifest"
)

// statusPages are the pages whose blocks of YAML that begin with status: are a status of that kind.
var statusPages = map[string]func() any{
	"docs/redisloadtest.md": func() any {
		return &struct {
			Status v1alpha1.RedisLoadTestStatus `json:"status"`
		}{}
	},
	"docs/workloads.md": func() any {
		return &struct {
			Status v1alpha1.RedisLoadTestStatus `json:"status"`
		}{}
	},
	"docs/redisfault.md": func() any {
		return &struct {
			Status v1alpha1.RedisFaultStatus `json:"status"`
		}{}
	},
}

// Every object that a page shows can be run: it decodes strictly, makes a plan, has an injector.
func TestExamples(t *testing.T) {
	seen := map[string]int{}
	for _, p := range pages(t) {
		for _, b := range p.Blocks {
			if b.Language != "yaml" {
				continue
			}
			if status := statusPages[p.Path]; status != nil && strings.HasPrefix(b.Text, "status:") {
				if err := yaml.UnmarshalStrict([]byte(b.Text), status()); err != nil {
					t.Errorf("%s:%d: %v", p.Path, b.Line, err)
				}
				seen["status"]++
				continue
			}
			for document := range strings.SplitSeq("\n"+b.Text, "\n---\n") {
				kind, err := run([]byte(document))
				if err != nil {
					t.Errorf("%s:%d: %v", p.Path, b.Line, err)
				}
				seen[kind]++
			}
		}
	}
	for _, kind := range []string{"RedisLoadTest", "RedisFault", "status"} {
		if seen[kind] < 2 {
			t.Errorf("only %d examples of %s were found", seen[kind], kind)
		}
	}
}

// run processes a document as far as possible without a cluster. kind is "" for objects of other APIs.
func run(document []byte) (kind string, err error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal(document, &head); err != nil || !strings.HasPrefix(head.APIVersion, "redquake.dev/") {
		return "", err
	}
	switch head.Kind {
	case "RedisFault":
		return head.Kind, runFault(document)
	case "RedisExperiment":
		e := &v1alpha1.RedisExperiment{}
		if err := manifest.Decode(document, e); err != nil {
			return head.Kind, err
		}
		return head.Kind, runExperiment(e)
	case "RedisExperimentSchedule":
		return head.Kind, runSchedule(document)
	}
	test := &v1alpha1.RedisLoadTest{}
	if err := manifest.Decode(document, test); err != nil {
		return head.Kind, err
	}
	return head.Kind, plan(test)
}

func plan(test *v1alpha1.RedisLoadTest) error {
	_, err := children.Plan(test, []string{"redis.default.svc:6379"})
	return err
}

// runExperiment makes every cell, and plans its load test.
func runExperiment(e *v1alpha1.RedisExperiment) error {
	p, err := experiment.NewPlan(&e.Spec)
	if err != nil {
		return err
	}
	e.UID = "7c0a4e5e-2d29-4f54-9f0c-1f4e5b0c7a11" // as the API server sets one
	for i := range p.Variants {
		test := children.RunLoadTest(e, &p.Variants[i], experiment.Slot{Number: i + 1, Round: 1})
		if err := manifest.Admit(test); err != nil {
			return err
		}
		if err := plan(test); err != nil {
			return err
		}
	}
	return nil
}

// runSchedule makes the runs of two scheduled times.
func runSchedule(document []byte) error {
	s := &v1alpha1.RedisExperimentSchedule{}
	if err := manifest.Decode(document, s); err != nil {
		return err
	}
	times, err := crontab.Parse(s.Spec.Schedule, s.Spec.TimeZone)
	if err != nil {
		return err
	}
	s.UID = "7c0a4e5e-2d29-4f54-9f0c-1f4e5b0c7a12" // as the API server sets one
	at, earlier := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC), ""
	for range 2 {
		at = times.Next(at)
		run := children.ScheduledExperiment(s, at, earlier)
		if err := manifest.Admit(run); err != nil {
			return err
		}
		if err := runExperiment(run); err != nil {
			return err
		}
		earlier = run.Name
	}
	return nil
}

func runFault(document []byte) error {
	f := &v1alpha1.RedisFault{}
	if err := manifest.Decode(document, f); err != nil {
		return err
	}
	if _, err := fault.For(&f.Spec, contract.Deps{}); err != nil {
		return err
	}
	if f.Spec.LoadTestRef != nil {
		return nil
	}
	f.UID = "7c0a4e5e-2d29-4f54-9f0c-1f4e5b0c7a11" // as the API server sets one
	probe := children.ProbeLoadTest(f)
	if err := manifest.Admit(probe); err != nil {
		return err
	}
	return plan(probe)
}

func TestRunRefuses(t *testing.T) {
	for name, document := range map[string]string{
		"unknown field": "apiVersion: redquake.dev/v1alpha1\nkind: RedisLoadTest\nspec: {load: {users: 1, pace: 2}}",
		"no load": "apiVersion: redquake.dev/v1alpha1\nkind: RedisLoadTest\nmetadata: {name: a}\nspec: {load: " +
			"{duration: 1s}, workload: {commands: [{name: a, command: [PING]}]}}",
		"unknown fault":    "apiVersion: redquake.dev/v1alpha1\nkind: RedisFault\nspec: {type: Flood}",
		"unknown in fault": "apiVersion: redquake.dev/v1alpha1\nkind: RedisFault\nspec: {type: PodKill, target: {}, podKill: {grace: 1}}",
	} {
		if _, err := run([]byte(document)); err == nil {
			t.Errorf("%s: nothing was refused", name)
		}
	}
}

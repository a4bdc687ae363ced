package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// workflow is what these tests look at.
type workflow struct {
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]struct {
		Uses        string            `json:"uses"`
		Permissions map[string]string `json:"permissions"`
		Timeout     any               `json:"timeout-minutes"`
		Steps       []struct {
			Uses string         `json:"uses"`
			With map[string]any `json:"with"`
			Run  string         `json:"run"`
		} `json:"steps"`
	} `json:"jobs"`
}

// workflows are the files of GitHub's workflows, by name, and their texts.
func workflows(t *testing.T) (found map[string]workflow, texts map[string]string) {
	t.Helper()
	paths, err := filepath.Glob("../../.github/workflows/*.yaml")
	if err != nil || len(paths) < 4 {
		t.Fatalf("there are the workflows %v, %v", paths, err)
	}
	found, texts = map[string]workflow{}, map[string]string{}
	for _, path := range paths {
		var w workflow
		name := filepath.Base(path)
		texts[name] = text(t, path)
		if err := yaml.Unmarshal([]byte(texts[name]), &w); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		found[name] = w
	}
	return found, texts
}

func text(t *testing.T, path string) string {
	t.Helper()
	read, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(read)
}

// TestWorkflowsRunWhatTheyName holds that an action is a commit, which nobody can move, with its version for readers.
func TestWorkflowsRunWhatTheyName(t *testing.T) {
	uses := regexp.MustCompile(`(?m)^ *(?:- )?uses: (.*)$`)
	pinned := regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	_, texts := workflows(t)
	count := 0
	for name, text := range texts {
		for _, m := range uses.FindAllStringSubmatch(text, -1) {
			count++
			if !pinned.MatchString(m[1]) && !strings.HasPrefix(m[1], "./") {
				t.Errorf("%s uses %s", name, m[1])
			}
		}
	}
	if count < 20 {
		t.Errorf("only %d uses were found", count)
	}
}

// TestWorkflowsMayDoLittle holds that a job has the permissions that it names and no others, and ends; and that only the
// publishing job of a release may write.
func TestWorkflowsMayDoLittle(t *testing.T) {
	found, _ := workflows(t)
	for name, w := range found {
		if w.Permissions == nil || len(w.Permissions) > 0 {
			t.Errorf("%s gives all of its jobs %v", name, w.Permissions)
		}
		for id, job := range w.Jobs {
			writes := slices.Contains(values(job.Permissions), "write")
			if len(job.Permissions) == 0 || writes != (name == "release.yaml" && id == "publish") {
				t.Errorf("%s: %s may %v", name, id, job.Permissions)
			}
			if job.Uses == "" && job.Timeout == nil {
				t.Errorf("%s: %s has no limit", name, id)
			}
			for _, step := range job.Steps {
				if strings.HasPrefix(step.Uses, "actions/checkout@") && step.With["persist-credentials"] != false {
					t.Errorf("%s: %s leaves its token in the tree", name, id)
				}
				// What a pull request or a tag is called must not become code.
				if strings.Contains(step.Run, "${{") {
					t.Errorf("%s: %s puts an expression into the script %q", name, id, step.Run)
				}
			}
		}
	}
}

func values(of map[string]string) (all []string) {
	for _, value := range of {
		all = append(all, value)
	}
	return all
}

// TestWorkflowsMakeWhatThereIs holds that their targets are in the Makefile.
func TestWorkflowsMakeWhatThereIs(t *testing.T) {
	makefile := text(t, "../../Makefile")
	made := regexp.MustCompile(`\bmake (?:-s )?([a-z0-9-]+)`)
	found, _ := workflows(t)
	count := 0
	for name, w := range found {
		for _, job := range w.Jobs {
			for _, step := range job.Steps {
				for _, m := range made.FindAllStringSubmatch(step.Run, -1) {
					count++
					if !strings.Contains(makefile, "\n"+m[1]+":") {
						t.Errorf("%s: the Makefile has no target %s", name, m[1])
					}
				}
			}
		}
	}
	if count < 8 {
		t.Errorf("only %d targets were found", count)
	}
}

// TestOneGoImage holds that the programs in the workflows' container are built by the Go of the Dockerfile, which
// Dependabot updates.
func TestOneGoImage(t *testing.T) {
	image := regexp.MustCompile(`docker\.io/library/golang:\S+`)
	want := image.FindString(text(t, "../../Dockerfile"))
	_, texts := workflows(t)
	others := []string{text(t, "../../test/departments/Dockerfile"), texts["ci.yaml"], texts["lab.yaml"]}
	for _, other := range others {
		if got := image.FindString(other); got != want || !strings.Contains(want, "@sha256:") {
			t.Errorf("there are the images %s and %s", want, got)
		}
	}
}

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// documented finds a command line of redquake in a shell line; what follows a pipe, a redirection, a comment or another command is not of it.
var documented = regexp.MustCompile(`(?:^|[\s;&|(])(?:bin/|/)?(?:kubectl-)?redquake ([a-z](?:'[^']*'|"[^"]*"|[^|;&><#)'"])+)`)

// undecided are the errors of flags that exist: their value is a variable, or is left out in a sentence.
var undecided = regexp.MustCompile(`invalid argument "\$|^flag needs an argument`)

// What pages and pipelines tell users to type is what the command line accepts: the command and its flags.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	found := map[string]int{}
	check := func(where, command string) {
		words, err := splitWords(strings.TrimSpace(command))
		if err != nil || len(words) == 0 {
			t.Errorf("%s: %q: %v", where, command, err)
			return
		}
		cmd, rest, err := newRoot("redquake", streams{}).Find(words)
		if err == nil && cmd.HasParent() {
			err = cmd.ParseFlags(rest)
			found[cmd.Name()]++
		}
		if err != nil && !undecided.MatchString(err.Error()) {
			t.Errorf("%s: redquake %s: %v", where, strings.Join(words, " "), err)
		}
	}
	for _, pattern := range []string{"../../README.md", "../../docs/*.md", "../../docs/*/*.md", "../../config/samples/gitops/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range shellLines(string(text), filepath.Ext(file) == ".md") {
				for _, match := range documented.FindAllStringSubmatch(line, -1) {
					check(file, match[1])
				}
			}
		}
	}
	for file, path := range map[string][]any{
		"tekton-task.yaml":               {"spec", "steps", 0, "args"},
		"rollouts-analysistemplate.yaml": {"spec", "metrics", 0, "provider", "job", "spec", "template", "spec", "containers", 0, "command"},
	} {
		words := wordsAt(t, filepath.Join("../../config/samples/gitops", file), path)
		check(file, strings.TrimPrefix(strings.Join(words, " "), "/redquake "))
	}
	for name, least := range map[string]int{"run": 4, "load": 4, "report": 4, "compare": 3, "doctor": 2, "stop": 1, "plan": 1, "mark": 1, "watch": 1, "rerun": 1, "results": 1, "dashboard": 1} {
		if found[name] < least {
			t.Errorf("only %d commands %s were found", found[name], name)
		}
	}
}

// quoted finds a command line in a sentence.
var quoted = regexp.MustCompile("`((?:kubectl )?redquake [^`]+)`")

// shellLines are the lines of a file, with those joined that end in a backslash; of a page those that it tells to type, in blocks and in sentences.
func shellLines(text string, isPage bool) (lines []string) {
	block := ""
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\\\n", " "), "\n") {
		typed, isTyped := strings.CutPrefix(line, "$ ")
		switch {
		case isPage && strings.HasPrefix(line, "```"):
			block = strings.TrimPrefix(line, "```") // "" at its end
		case isPage && block == "":
			for _, match := range quoted.FindAllStringSubmatch(line, -1) {
				lines = append(lines, strings.TrimPrefix(match[1], "kubectl "))
			}
		case block == "console" && isTyped:
			lines = append(lines, typed)
		case (!isPage || block == "sh") && !strings.HasPrefix(strings.TrimSpace(line), "#"):
			lines = append(lines, line)
		}
	}
	return lines
}

// wordsAt are the texts of a list in a YAML file.
func wordsAt(t *testing.T, file string, path []any) (words []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var at any
	if err := yaml.Unmarshal(text, &at); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	for _, key := range path {
		switch of := at.(type) {
		case map[string]any:
			at = of[key.(string)]
		case []any:
			at = of[key.(int)]
		}
	}
	list, _ := at.([]any)
	for _, word := range list {
		words = append(words, word.(string))
	}
	return words
}

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/redquake/redquake/cmd/redquake/internal/cli"
	"github.com/redquake/redquake/cmd/redquake/internal/words"
)

// documented finds a command line of redquake in a shell line; what follows a pipe, a redirection, a comment or another
// command is not of it.
var documented = regexp.MustCompile(
	`(?:^|[\s;&|(])(?:bin/|/)?(?:kubectl-)?redquake ([a-z](?:'[^']*'|"[^"]*"|[^|;&><#)'"])+)`)

// listed finds one in the command or the arguments of a container.
var listed = regexp.MustCompile(`\[(?:/redquake, )?(run, [^\]]+)\]`)

// undecided are the errors of flags that exist: their value is a variable, or is left out in a sentence.
var undecided = regexp.MustCompile(`invalid argument "\$|^flag needs an argument`)

// What pages and pipelines tell users to type is what the command line accepts: the command and its flags.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	found := map[string]int{}
	check := func(where, command string) {
		words, err := words.Split(strings.TrimSpace(command))
		if err != nil || len(words) == 0 {
			t.Errorf("%s: %q: %v", where, command, err)
			return
		}
		words = translated(words)
		cmd, rest, err := newRoot("redquake", cli.Streams{}).Find(words)
		if err == nil && cmd.HasParent() {
			err = cmd.ParseFlags(rest)
			found[cmd.Name()]++
		}
		if err != nil && !undecided.MatchString(err.Error()) {
			t.Errorf("%s: redquake %s: %v", where, strings.Join(words, " "), err)
		}
	}
	for _, pattern := range []string{
		"../../README.md", "../../docs/*.md", "../../docs/*/*.md",
		"../../config/samples/gitops/*.yaml",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, match := range listed.FindAllStringSubmatch(string(text), -1) {
				check(file, strings.ReplaceAll(match[1], ", ", " "))
				found["in a list"]++
			}
			for _, line := range shellLines(string(text), filepath.Ext(file) == ".md") {
				for _, match := range documented.FindAllStringSubmatch(line, -1) {
					check(file, match[1])
				}
			}
		}
	}
	for name, least := range map[string]int{
		"in a list": 2, "run": 4, "load": 4, "report": 4, "compare": 3, "doctor": 2, "stop": 1, "plan": 1, "mark": 1,
		"watch": 1, "rerun": 1, "results": 1, "dashboard": 1,
	} {
		if found[name] < least {
			t.Errorf("only %d commands %s were found", found[name], name)
		}
	}
}

// quoted finds a command line in a sentence.
var quoted = regexp.MustCompile("`((?:kubectl )?redquake [^`]+)`")

// shellLines are the lines of a file, with those joined that end in a backslash; of a page those that it tells to type,
// in blocks and in sentences.
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
		case (!isPage || block == "sh") && !strings.HasPrefix(strings.TrimSpace(line), "#") && !strings.HasPrefix(line, "helm "):
			lines = append(lines, line) // helm's redquake is a release
		}
	}
	return lines
}

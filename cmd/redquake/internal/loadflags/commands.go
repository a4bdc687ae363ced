package loadflags

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/internal/words"
	"github.com/redquake/redquake/internal/plan"
)

// written is a command as a user wrote it.
type written struct {
	text  string
	where string // a flag with the text, or a line of a file: errors begin with it
}

// writtenCommands are those of --command, and then those of the file of --commands.
func (f *Flags) writtenCommands(in io.Reader) (all []written, err error) {
	for _, text := range f.commands {
		all = append(all, written{text, fmt.Sprintf("--command %q", text)})
	}
	if f.commandFile == "" {
		return all, nil
	}
	var text []byte
	if f.commandFile == "-" {
		text, err = io.ReadAll(in)
	} else {
		text, err = os.ReadFile(f.commandFile)
	}
	if err != nil {
		return nil, fmt.Errorf("--commands: %w", err)
	}
	before := len(all)
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, written{line, fmt.Sprintf("--commands: line %d of %s", number, f.commandFile)})
		}
	}
	if len(all) == before {
		return nil, fmt.Errorf("--commands: %s has no command", f.commandFile)
	}
	return all, nil
}

// parseCommands parses commands as they are written: a Redis command, optionally with a weight, as
// "9:GET {key}".
// Operations are named after the command's first word; a second GET is get-2.
func parseCommands(all []written) ([]v1alpha1.WorkloadCommand, error) {
	var commands []v1alpha1.WorkloadCommand
	used := map[string]int{}
	for _, one := range all {
		weight, rest, err := cutWeight(one.text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.where, err)
		}
		words, err := words.Split(rest)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.where, err)
		}
		if problem := plan.CommandProblem(words); problem != "" {
			return nil, fmt.Errorf("%s: %s", one.where, problem)
		}
		name := operationName(words[0])
		used[name]++
		if n := used[name]; n > 1 {
			name += "-" + strconv.Itoa(n)
		}
		commands = append(commands, v1alpha1.WorkloadCommand{
			Name:    name,
			Weight:  weight,
			Command: words,
		})
	}
	return commands, nil
}

// cutWeight cuts the weight "9:" off "9:GET {key}"; without one the weight is 1.
func cutWeight(text string) (int32, string, error) {
	number, rest, found := strings.Cut(text, ":")
	if !found || strings.ContainsAny(number, " \t\n'\"") {
		return 1, text, nil // the colon belongs to the command
	}
	if number == "" || strings.Trim(number, "0123456789") != "" {
		return 0, "", fmt.Errorf("the weight %s must be a whole number", number)
	}
	weight, err := strconv.ParseInt(number, 10, 32)
	if err != nil || weight < 1 {
		return 0, "", fmt.Errorf("the weight %s must be between 1 and 1000000", number)
	}
	return int32(weight), rest, nil
}

// operationName converts a command's name to a valid name of an operation: lower case, with dashes
// for other characters.
func operationName(word string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '_':
			return r
		}
		return '-'
	}, strings.ToLower(word))
	if name = strings.Trim(name, "-._"); name == "" {
		return "command"
	}
	return name
}

// applyObjectives overrides the objectives with the flags of the same names.
func (f *Flags) applyObjectives(spec *v1alpha1.RedisLoadTestSpec) {
	objectives := &v1alpha1.Objectives{}
	if spec.Objectives != nil {
		objectives = spec.Objectives
	}
	limits := map[string]func(){
		"min-throughput":   func() { objectives.MinThroughput = &f.minThroughput },
		"max-latency-p50":  func() { objectives.MaxLatencyP50 = limit(f.maxP50) },
		"max-latency-p99":  func() { objectives.MaxLatencyP99 = limit(f.maxP99) },
		"max-latency-p999": func() { objectives.MaxLatencyP999 = limit(f.maxP999) },
		"max-error-rate":   func() { objectives.MaxErrorRate = &f.maxErrorRate },
		"max-lost-writes":  func() { objectives.MaxLostWrites = &f.maxLostWrites },
	}
	for name, set := range limits {
		if f.changed(name) {
			set()
			spec.Objectives = objectives
		}
	}
}

func limit(d time.Duration) *metav1.Duration {
	return &metav1.Duration{Duration: d}
}

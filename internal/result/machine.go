package result

import (
	"regexp"
	"strings"
)

var (
	connectionsOfPods = regexp.MustCompile(`set client\.connections to ([0-9]+) per load pod`)
	ofOnePod          = strings.NewReplacer(
		"Use a second load pod on another node, a higher CPU limit, or a machine that is less busy",
		"Use a machine that is less busy",
		"the busiest load pod", "this process",
		"load pod 0", "this process",
		"the CPU of its node", "a CPU of the machine",
	)
)

// OnThisMachine is a sentence about a load of pods in the words of one that a process on a machine
// makes, whose flags take the place of fields.
func OnThisMachine(text string) string {
	return ofOnePod.Replace(connectionsOfPods.ReplaceAllString(text, "set --connections to $1"))
}

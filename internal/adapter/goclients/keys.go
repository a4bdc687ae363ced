package goclients

import (
	"slices"
	"strconv"
	"strings"
)

// keyAt is where the first key of a command is among its words, as clients/PROTOCOL.md says; -1 for
// a command without one.
func keyAt(words []string) int {
	at := 1
	switch strings.ToUpper(words[0]) {
	case "PING", "WAIT", "INFO", "SCRIPT":
		return -1
	case "EVAL", "EVALSHA":
		if len(words) < 4 {
			return -1
		}
		if n, err := strconv.Atoi(words[2]); err != nil || n < 1 {
			return -1
		}
		at = 3
	case "XREAD", "XREADGROUP":
		streams := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(w, "STREAMS") })
		if streams < 0 {
			return -1
		}
		at = streams + 1
	}
	if at >= len(words) {
		return -1
	}
	return at
}

package clitest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/result"
)

// LoadTestYAML is a file with a small load test.
const LoadTestYAML = `
apiVersion: redquake.dev/v1alpha1
kind: RedisLoadTest
metadata: {name: checkout}
spec:
  target: {addresses: ["127.0.0.1:6379"]}
  load: {users: 10, duration: 30s}
  workload: {commands: [{name: get, command: [GET, "{key}"]}]}
`

// GapText is a gap with its bounds, rounded to 10 µs.
func GapText(g *result.Gap) string {
	if g == nil {
		return "no gap"
	}
	text := fmt.Sprintf("%v (%v to %v)", time.Duration(g.Length).Round(10*time.Microsecond),
		time.Duration(g.AtLeast).Round(10*time.Microsecond),
		time.Duration(g.AtMost).Round(10*time.Microsecond))
	if g.Of != "" {
		text = g.Of + " " + text
	}
	return text
}

// Result reads a result in JSON.
func Result(t *testing.T, text string) *result.Load {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	r := &result.Load{}
	if err := decoder.Decode(r); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return r
}

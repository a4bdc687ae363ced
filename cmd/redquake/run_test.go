package main

import (
	"strings"
	"testing"

	"github.com/redquake/redquake/cmd/redquake/internal/cli"
)

func TestReadWrittenRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"{apiVersion: v1, kind: Secret, metadata: {name: b}}": "contains no RedisLoadTest, RedisFault, RedisExperiment or " +
			"RedisExperimentSchedule",
		"a: [": "standard input: ", // of the YAML parser
		"{apiVersion: redquake.dev/v1alpha1, kind: RedisFault}": "a RedisFault has no metadata.name",
		"text": "is not an object",
		"{apiVersion: redquake.dev/v1alpha1, kind: RedisExperimentSchedule, metadata: {name: " +
			"nightly}}": "--file: standard input: redisexperimentschedule/nightly never ends: create it by kubectl apply, and " +
			"follow a run of it, which is a RedisExperiment, by redquake watch redisexperiment/RUN\n",
	} {
		code, out, stderr := calledWith(text, "redquake", "run", "-f", "-")
		if code != cli.ExitError || out != "" || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit code %d, stderr %q, want %q", text, code, stderr, want)
		}
	}
}

package children

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Every change makes the smallest spec wrong in one place, and the message begins with that place.
func TestPlanNamesTheField(t *testing.T) {
	tests := []struct {
		change string // merged over the smallest spec, key by key of the top two levels
		want   string
	}{
		{`{target: {database: -1}}`, "spec.target.database: "},
		{`{target: {topology: Ring}}`, "spec.target.topology: "},
		{`{target: {topology: Sentinel}}`, "spec.target.sentinel: "},
		{`{target: {topology: Cluster, sentinel: {addresses: ["a:1"]}}}`, "spec.target.sentinel: "},
		{`{target: {topology: Sentinel, sentinel: {}}}`, "spec.target.sentinel: "},
		{`{target: {topology: Sentinel, sentinel: {addresses: [a]}}}`, "spec.target.sentinel.addresses: "},
		{`{target: {topology: Sentinel, sentinel: {service: {}}}}`, "spec.target.sentinel.service.name: "},
		{`{target: {topology: Sentinel, sentinel: {addresses: ["a:1"], auth: {passwordSecretRef: {name: x}}}}}`, "spec.target.sentinel.auth.passwordSecretRef: "},
		{`{target: {topology: Cluster, database: 1}}`, "spec.target.database: "},
		{`{client: {goRedis: {poolSize: 1}}}`, "spec.client.goRedis: "},
		{`{client: {driver: GoRedis, mode: Multiplexed}}`, "spec.client.mode: "},
		{`{client: {driver: GoRedis, pipeline: 2}}`, "spec.client.pipeline: "},
		{`{client: {driver: GoRedis, addedLatency: 1ms}}`, "spec.client.addedLatency: "},
		{`{client: {driver: GoRedis, retries: 1}}`, "spec.client.retries: "},
		{`{client: {driver: GoRedis, goRedis: {maxRetries: -2}}}`, "spec.client.goRedis.maxRetries: "},
		{`{client: {addedLatency: 11s}}`, "spec.client.addedLatency: "},
		{`{target: {auth: {passwordSecretRef: {name: x}}}}`, "spec.target.auth.passwordSecretRef: "},
		{`{target: {tls: {caSecretRef: {}}}}`, "spec.target.tls.caSecretRef.name: "},
		{`{target: {tls: {certSecretRef: {}}}}`, "spec.target.tls.certSecretRef.name: "},
		{`{client: {connections: -1}}`, "spec.client.connections: "},
		{`{client: {dialTimeout: 1ms}}`, "spec.client.dialTimeout: "},
		{`{client: {requestTimeout: 2m}}`, "spec.client.requestTimeout: "},
		{`{client: {protocol: RESP4}}`, "spec.client.protocol: "},
		{`{load: {users: 0}}`, "spec.load.users: "},
		{`{load: {users: null}}`, "spec.load: "},
		{`{load: {duration: null}}`, "spec.load: "},
		{`{load: {duration: 1ms}}`, "spec.load.duration: "},
		{`{load: {rampUp: 2h}}`, "spec.load.rampUp: "},
		{`{load: {warmUp: 2h}}`, "spec.load.warmUp: "},
		{`{load: {thinkTime: 2h}}`, "spec.load.thinkTime: "},
		{`{load: {users: null, rate: 10, thinkTime: 1s}}`, "spec.load.thinkTime: "},
		{`{load: {stages: [{duration: 1s, users: 1}]}}`, "spec.load.stages: "},
		{`{load: {users: null, stages: [{duration: 1s, users: 1}]}}`, "spec.load.stages: "},
		{`{load: {users: null, duration: null, stages: [{duration: 1s}]}}`, "spec.load.stages[0]: "},
		{`{load: {users: null, duration: null, stages: [{duration: 1s, users: 0}]}}`, "spec.load.stages: "},
		{`{load: {users: null, duration: null, stages: [{duration: 1s, users: 1}, {duration: 1s, rate: 1}]}}`, "spec.load.stages: "},
		{`{load: {users: null, duration: null, stages: [{duration: 1ms, users: 1}]}}`, "spec.load.stages[0].duration: "},
		{`{load: {users: null, duration: null, warmUp: 1s, stages: [{duration: 1s, users: 1}]}}`, "spec.load.stages: Forbidden: stages bring"},
		{`{load: {users: null, duration: null, thinkTime: 1s, stages: [{duration: 1s, rate: 1}]}}`, "spec.load.stages: Forbidden: thinkTime"},
		{`{load: {search: {}}}`, "spec.load.search: Required value: needs one of objectives.maxLatencyP50"},
		{`{load: {search: {}}, objectives: {minThroughput: "5"}}`, "spec.load.search: Required value: needs one of objectives.maxLatencyP50"},
		{`{load: {search: {}}, objectives: {maxErrorRate: "1%"}, pods: {lost: Continue}}`, "spec.load.search: Forbidden: needs pods.lost: Fail"},
		{`{load: {rate: 5, search: {}}, objectives: {maxErrorRate: "1%"}}`, "spec.load.search: Forbidden: search decides"},
		{`{load: {requests: 5, search: {}}, objectives: {maxErrorRate: "1%"}}`, "spec.load.search: Forbidden: search decides"},
		{`{load: {duration: null, search: {}}, objectives: {maxErrorRate: "1%"}}`, "spec.load: Required value: set duration"},
		{`{load: {duration: 10s, search: {from: 10}}, objectives: {maxLatencyP99: 1ms}}`, "spec.load.duration: Invalid value: \"10s\": the first trial alone takes 1m42s: more duration, or a higher search.from"},
		{`{load: {thinkTime: 1s, search: {}}, objectives: {maxErrorRate: "1%"}}`, "spec.load.search: Forbidden: thinkTime"},
		{`{load: {search: {from: 10, to: 5}}, objectives: {maxErrorRate: "1%"}}`, "spec.load.search.from: "},
		{`{load: {search: {precision: 60%}}, objectives: {maxErrorRate: "1%"}}`, "spec.load.search.precision: "},
		{`{load: {search: {trial: 1ms}}, objectives: {maxErrorRate: "1%"}}`, "spec.load.search.trial: "},
		{`{load: {search: {settle: 1h}}, objectives: {maxErrorRate: "1%"}}`, "spec.load.search.settle: "},
		{`{load: {requests: 1}, pods: {count: 2}}`, "spec.load.requests: "},
		{`{load: {users: 2}, pods: {count: 3}}`, "spec.load.users: "},
		{`{workload: {commands: []}}`, "spec.workload.commands: "},
		{`{workload: {commands: [{name: "a b", command: [PING]}]}}`, "spec.workload.commands[0].name: "},
		{`{workload: {commands: [{name: a, command: [PING]}, {name: a, command: [PING]}]}}`, "spec.workload.commands[1].name: "},
		{`{workload: {commands: [{name: a, command: []}]}}`, "spec.workload.commands[0].command: "},
		{`{workload: {commands: [{name: a, weight: -1, command: [PING]}]}}`, "spec.workload.commands[0].weight: "},
		{`{workload: {keyspace: {distribution: Poisson}}}`, "spec.workload.keyspace.distribution: "},
		{`{workload: {keyspace: {ttl: 1ms}}}`, "spec.workload.keyspace.ttl: "},
		{`{workload: {values: {bytes: 0}}}`, "spec.workload.values.bytes: "},
		{`{workload: {values: {minBytes: 1}}}`, "spec.workload.values: "},
		{`{workload: {values: {bytes: 1, minBytes: 1, maxBytes: 1}}}`, "spec.workload.values: "},
		{`{workload: {values: {minBytes: 2, maxBytes: 1}}}`, "spec.workload.values.minBytes: "},
		{`{pods: {lost: Ignore}}`, "spec.pods.lost: "},
		{`{pods: {startDeadline: 1s}}`, "spec.pods.startDeadline: "},
		{`{probe: {rate: -1}}`, "spec.probe.rate: "},
		{`{observe: {interval: 300ms}}`, "spec.observe.interval: "},
		{`{observe: {redisInfo: 1ms}}`, "spec.observe.redisInfo: "},
		{`{verify: {acknowledgedWrites: true, share: "0%"}}`, "spec.verify.share: "},
		{`{verify: {acknowledgedWrites: true, share: "101%"}}`, "spec.verify.share: "},
		{`{verify: {acknowledgedWrites: true, share: "1"}}`, "spec.verify.share: "},
		{`{verify: {staleReads: true}}`, "spec.verify: "},
		{`{objectives: {maxLostWrites: 0}}`, "spec.objectives.maxLostWrites: "},
	}
	for _, tt := range tests {
		t.Run(tt.change, func(t *testing.T) {
			_, err := Plan(loadTest(t, merged(t, smallest, tt.change)), addresses)
			if err == nil || !strings.HasPrefix(strings.TrimPrefix(err.Error(), "["), tt.want) {
				t.Errorf("the error is %v, want one that begins with %q", err, tt.want)
			}
		})
	}
}

func TestPlanNeedsAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"":              `spec.target.addresses: Invalid value: "": must be host:port`,
		"redis":         `spec.target.addresses: Invalid value: "redis": must be host:port`,
		"redis:70000":   `spec.target.addresses: Invalid value: "redis:70000": the port must be between 1 and 65535`,
		"redis:http":    `spec.target.addresses: Invalid value: "redis:http": the port must be between 1 and 65535`,
		":6379":         `spec.target.addresses: Invalid value: ":6379": must be host:port`,
		"[::1]:6379":    "",
		"10.1.2.3:6379": "",
	} {
		_, err := Plan(loadTest(t, smallest), []string{address})
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", address, err)
		case want != "" && (err == nil || err.Error() != want):
			t.Errorf("%q: %v, want %s", address, err, want)
		}
	}
	_, err := Plan(loadTest(t, smallest), nil)
	if want := "spec.target: Required value: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("without addresses: %v, want %s...", err, want)
	}
}

// Pods of an Indexed Job take its name as their host name, which has no dots.
func TestPlanNeedsAHostName(t *testing.T) {
	test := loadTest(t, smallest)
	test.Name = "checkout.cache"
	if _, err := Plan(test, addresses); err == nil || !strings.HasPrefix(err.Error(), "metadata.name: ") {
		t.Errorf("a name with a dot: %v, want metadata.name: ...", err)
	}
}

func TestPlanNamesEveryProblem(t *testing.T) {
	_, err := Plan(loadTest(t, merged(t, smallest, `{load: {users: 0}, client: {pipeline: 5000}}`)), addresses)
	if err == nil || !strings.Contains(err.Error(), "spec.load.users: ") || !strings.Contains(err.Error(), "spec.client.pipeline: ") {
		t.Errorf("the error is %v, want both problems", err)
	}
}

// merged lays change over spec: members of the top two levels are replaced, null takes one away.
func merged(t *testing.T, spec, change string) string {
	t.Helper()
	var base, over map[string]map[string]any
	for text, into := range map[string]*map[string]map[string]any{spec: &base, change: &over} {
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	for section, members := range over {
		if base[section] == nil {
			base[section] = map[string]any{}
		}
		for name, v := range members {
			base[section][name] = v
		}
	}
	text, err := yaml.Marshal(base)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

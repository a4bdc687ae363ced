//go:build integration

package admission_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/internal/rights"
)

// experimentPermissionCases are those of TestWhoMayBreakWhat.
var experimentPermissionCases = map[string]permissionCase{
	"Experiment": {"RedisExperiment", `{}`, ofExperiment()},
	"ExperimentSecrets": {
		"RedisExperiment", `{template: {spec: {target: ` + targetWithSecrets + `}}}`,
		ofExperiment(secretsOfTarget...),
	},
	"ExperimentFault": {"RedisExperiment", `{faults: [` + killFault + `]}`, ofFaults("delete pods")},
	"ExperimentFaults": {
		"RedisExperiment",
		`{faults: [` + killFault + `, {name: failover, spec: {action: {type: Failover}}}]}`,
		ofFaults("delete pods", "create pods/exec"),
	},
	"ExperimentNode": {
		"RedisExperiment",
		`{faults: [{name: node, spec: {action: {type: NodeLoss, nodeLoss: {node: a}}}}]}`,
		ofFaults("delete pods", "patch nodes"),
	},
	"ExperimentDrain": {
		"RedisExperiment", `{faults: [{name: drain, spec: {action: {type: Drain}}}]}`,
		ofFaults("create pods/eviction"),
	},
	"ExperimentDrainOfNode": {
		"RedisExperiment", `{faults: [{name: drain, spec: {action: {type: Drain, drain: {node: a}}}}]}`,
		ofFaults("create pods/eviction", "patch nodes"),
	},
	"ExperimentOperator": {
		"RedisExperiment", `{faults: [{name: away, spec: {action: {type: OperatorOutage, operatorOutage: {deployment: a}}}}]}`,
		ofFaults("update deployments/scale.apps"),
	},
	"ExperimentOperatorElsewhere": {
		"RedisExperiment",
		`{faults: [{name: away, spec: {action: {type: OperatorOutage, operatorOutage: {deployment: a, namespace: b}}}}]}`,
		ofFaults("update deployments/scale.apps", "update deployments/scale.apps in all namespaces"),
	},
	"ExperimentOperatorByParameter": {
		"RedisExperiment",
		`{matrix: [{name: where, path: faults.away.action.operatorOutage.namespace, values: [b, c]}],
		  faults: [{name: away, spec: {action: {type: OperatorOutage, operatorOutage: {deployment: a}}}}]}`,
		ofFaults("update deployments/scale.apps", "update deployments/scale.apps in all namespaces"),
	},
	"ExperimentDrainByParameter": {
		"RedisExperiment",
		`{matrix: [{name: where, path: faults.drain.action.drain.node, values: [a, b]}],
		  faults: [{name: drain, spec: {action: {type: Drain}}}]}`,
		ofFaults("create pods/eviction", "patch nodes"),
	},
	"ExperimentVolumeLoss": {
		"RedisExperiment",
		`{faults: [{name: lose, spec: {allow: [DataLoss], action: {type: VolumeLoss}}}]}`,
		ofFaults("delete pods", "delete persistentvolumeclaims"),
	},
	"ExperimentDiskFull": {
		"RedisExperiment",
		`{faults: [{name: full, spec: {action: {type: DiskFull}}}]}`,
		ofFaults("create pods", "create pods/exec"),
	},
	"ExperimentChaosMesh": {
		"RedisExperiment",
		`{faults: [{name: kill, spec: {engine: ChaosMesh, action: {type: PodKill}}}]}`,
		ofFaults("create podchaos.chaos-mesh.org"),
	},
	"ExperimentExternal": {
		"RedisExperiment", `{faults: [{name: mark, spec: {action: {type: External}}}]}`,
		ofFaults(),
	},
	"ExperimentConfig": {
		"RedisExperiment", `{matrix: [` + someUsers + `, ` + twoFsyncs + `]}`,
		ofFaults("create pods/exec"),
	},
	"ExperimentThreads": {
		"RedisExperiment",
		`{matrix: [{name: a, settings: [{name: live, ioThreads: {count: 2, method: Live}}, {name: auto,
		  ioThreads: {count: 2}}]}]}`, ofFaults("delete pods", "create pods/exec", "patch statefulsets.apps"),
	},
	"ExperimentThreadsLive": {
		"RedisExperiment",
		`{matrix: [{name: a, settings: [{name: live, ioThreads: {count: 2, method: Live}}]}]}`, ofFaults("create pods/exec"),
	},
	"ExperimentResources": {
		"RedisExperiment",
		`{matrix: [{name: a, settings: [{name: small, resources: {cpu: 100m}}]}]}`,
		ofFaults("patch pods/resize or patch statefulsets.apps"),
	},
	"ExperimentReplicas": {
		"RedisExperiment",
		`{matrix: [{name: a, settings: [{name: as-it-is}, {name: more, replicaScale: {by: 1}}]}]}`,
		ofFaults("create pods/exec", "patch statefulsets.apps"),
	},
	"ExperimentTemplate": {
		"RedisExperiment",
		`{matrix: [{name: a, settings: [{name: high, podTemplate: {patch: {spec: {priorityClassName: high}}}}]}]}`,
		ofFaults("delete pods", "patch statefulsets.apps"),
	},
	"ExperimentNothingSet": {"RedisExperiment", `{matrix: [{name: a, settings: [{name: as-it-is}]}]}`, ofExperiment()},
	"ExperimentFaultSecrets": {
		"RedisExperiment",
		`{faults: [{name: kill, spec: {target: ` + targetWithSecrets + `, action: {type: PodKill}}}]}`,
		ofFaults(append([]string{"delete pods"}, secretsOfTarget...)...),
	},
	"ExperimentQuery": {
		"RedisExperiment",
		`{faults: [{name: kill, spec: {stopIf: {queries: [{name: a, query: up, below: "1", prometheus: {url: "http://a",
		  authSecretRef: {name: query}}}]}, action: {type: PodKill}}}]}`, ofFaults("delete pods", "get secret query"),
	},
	"ExperimentSameSecret": {
		"RedisExperiment",
		`{template: {spec: {target: {auth: ` + authOne +
			`}}}, faults: [{name: kill, spec: {target: {service: {name: redis}, auth: ` + authOne +
			`}, action: {type: PodKill}}}]}`, ofFaults("delete pods", "get secret one"),
	},
	"ExperimentSecretName": {
		"RedisExperiment",
		`{matrix: [{name: a, path: target.auth.passwordSecretRef.name, values: [a]}]}`, ofExperiment("get secrets"),
	},
	"ExperimentSecretAround": {
		"RedisExperiment", `{matrix: [{name: a, path: target, values: ["{}"]}]}`,
		ofExperiment("get secrets"),
	},
	"ExperimentSecretCapital": {
		"RedisExperiment", `{matrix: [{name: a, path: Workload.CacheAside, values: ["{}"]}]}`,
		ofExperiment("get secrets"),
	},
	"ExperimentFaultTarget": {
		"RedisExperiment",
		`{faults: [` + killFault + `], matrix: [{name: a, path: faults.kill.target.sentinel, values: ["{}"]}]}`,
		ofFaults("delete pods", "get secrets"),
	},
	"ExperimentFaultQuery": {
		"RedisExperiment",
		`{faults: [` + killFault + `], matrix: [{name: a, path: faults.kill.stopIf.queries.0.query, values: [up]}]}`,
		ofFaults("delete pods", "get secrets"),
	},
	"ExperimentTargetService": {
		"RedisExperiment",
		`{matrix: [{name: a, path: target.service.name, values: [a]}, {name: b, path: target.database, values: [1]}]}`,
		ofExperiment(),
	},
	// A parameter may take away the setting with which a fault needs less, and another fault keeps it.
	"ExperimentLiveFault": {"RedisExperiment", `{faults: [` + liveFault + `]}`, ofFaults("create pods/exec")},
	"ExperimentNotLive": {
		"RedisExperiment",
		`{faults: [` + liveFault + `], matrix: [{name: a, path: faults.threads.action.ioThreads.method, values: [Auto]}]}`,
		ofFaults("delete pods", "create pods/exec", "patch statefulsets.apps"),
	},
	"ExperimentNotLiveAround": {
		"RedisExperiment",
		`{faults: [` + liveFault + `], matrix: [{name: a, path: faults.threads.action.ioThreads, values: ["{}"]}]}`,
		ofFaults("delete pods", "create pods/exec", "patch statefulsets.apps"),
	},
	"ExperimentStaysLive": {
		"RedisExperiment",
		`{faults: [` + liveFault +
			`, {name: threads-2, spec: {action: {type: External}}}], matrix: [{name: a,
			  path: faults.threads-2.action.external.waitFor, values: [1s]}]}`,
		ofFaults("create pods/exec"),
	},
}

// schedulePermissionCases are those of schedules: whoever creates one needs what its experiment needs, and the
// permission to create that.
func schedulePermissionCases() map[string]permissionCase {
	all := map[string]permissionCase{
		"ScheduleNotify": {
			"RedisExperimentSchedule", `{notify: {urlSecretRef: {name: chat, key: url}}}`,
			ofSchedule(ofExperiment("get secret chat")...),
		},
		"ScheduleSameSecret": {
			"RedisExperimentSchedule",
			inSchedule(`{template: {spec: {target: {auth: `+authOne+`}}}}`, `notify: {urlSecretRef: {name: one, key: url}}`),
			ofSchedule(ofExperiment("get secret one")...),
		},
	}
	for title, of := range experimentPermissionCases {
		all["Schedule"+title] = permissionCase{"RedisExperimentSchedule", inSchedule(of.spec), ofSchedule(of.needs...)}
	}
	return all
}

const authOne = `{passwordSecretRef: {name: one, key: password}}`

// ofExperiment are the permissions that every experiment needs, and others.
func ofExperiment(others ...string) []string {
	return append([]string{"create redisloadtests.redquake.dev", "create jobs.batch"}, others...)
}

// ofFaults are those that every experiment with faults or settings needs, and others.
func ofFaults(others ...string) []string {
	return ofExperiment(append([]string{"create redisfaults.redquake.dev"}, others...)...)
}

// ofSchedule are those that every schedule needs, and others.
func ofSchedule(others ...string) []string {
	return append([]string{"create redisexperiments.redquake.dev"}, others...)
}

// A refusal names the field that needs the permission.
func TestRefusalsOfExperimentsNameTheField(t *testing.T) {
	tests := []struct{ name, spec, field string }{
		{"template", `{}`, "spec.template"},
		{
			"secret", `{template: {spec: {target: {auth: ` + authOne + `}}}}`,
			"spec.template.spec.target.auth.passwordSecretRef",
		},
		{
			"fault", `{faults: [{name: mark, spec: {action: {type: External}}}, ` + killFault + `]}`,
			"spec.faults[kill]: type PodKill",
		},
		{
			"setting", `{matrix: [` + someUsers +
				`, {name: fsync, settings: [{name: as-it-is}, {name: always, config: {appendfsync: always}}]}]}`,
			"spec.matrix[fsync].settings[always].config",
		},
		{
			"path", `{matrix: [` + someUsers + `, {name: password, path: target.auth, values: ["{}"]}]}`,
			"spec.matrix[password].path, which may set the name of a Secret,",
		},
		{
			"query",
			`{faults: [{name: mark, spec: {action: {type: Failover}, stopIf: {queries: [{name: a, query: up, below: "1",
			  prometheus: {url: "https://a", tls: {caSecretRef: {name: ca}}}}]}}}]}`,
			"spec.faults[mark].spec.stopIf.queries[0].prometheus.tls.caSecretRef",
		},
	}
	missing := map[string]string{
		"template": "create jobs.batch",
		"secret":   "get secret one",
		"fault":    "delete pods",
		"setting":  "create pods/exec",
		"path":     "get secrets",
		"query":    "get secret ca",
	}
	for _, test := range tests {
		for kind, spec := range map[string]string{
			"RedisExperiment":         test.spec,
			"RedisExperimentSchedule": inSchedule(test.spec),
		} {
			t.Run(kind+"/"+test.name, func(t *testing.T) {
				t.Parallel()
				namespace, field := newNamespace(t), test.field
				has := []string{"create redisloadtests.redquake.dev", "create redisfaults.redquake.dev"}
				if kind == "RedisExperimentSchedule" {
					has, field = ofSchedule(has...), strings.Replace(field, "spec", "spec.template.spec", 1)
				}
				if test.name != "template" {
					has = append(has, "create jobs.batch")
				}
				if test.name == "query" {
					has = append(has, "create pods/exec")
				}
				userWith(t, kind, namespace, has...).isRefusedBecause(kind, spec,
					field+" needs the permission to "+missing[test.name]+" in namespace "+namespace)
			})
		}
	}
}

// The fields of a schedule itself.
func TestRefusalsOfSchedulesNameTheField(t *testing.T) {
	const notify = `{notify: {urlSecretRef: {name: chat, key: url}}}`
	namespace := newNamespace(t)
	userWith(t, "RedisExperimentSchedule", namespace,
		ofExperiment("get secret chat")...).isRefusedBecause("RedisExperimentSchedule", notify,
		"spec.template needs the permission to create redisexperiments.redquake.dev in namespace "+namespace)
	userWith(t, "RedisExperimentSchedule", namespace,
		ofSchedule(ofExperiment()...)...).isRefusedBecause("RedisExperimentSchedule", notify,
		"spec.notify.urlSecretRef needs the permission to get secret chat in namespace "+namespace)
}

// The experiment that takes the most checks, and a schedule of it, are within the API server's budget, for whoever has
// all permissions.
func TestMostChecksOfAnExperiment(t *testing.T) {
	query := func(i, q int) string {
		return fmt.Sprintf(
			`{name: q%[2]d, query: up, below: "1", prometheus: {url: "https://a", authSecretRef: {name: a%[1]d},
			  tls: {caSecretRef: {name: ca}, certSecretRef: {name: cert}}}}`, i, q)
	}
	var faults []string
	for i, action := range []string{
		`action: {type: VolumeAttachDelay}`, `engine: ChaosMesh, action: {type: NetworkDelay, networkDelay: {latency: 10ms}}`,
		`engine: ChaosMesh, action: {type: CPUStress}`,
		`engine: ChaosMesh, action: {type: ClockSkew, clockSkew: {offset: 1m}}`,
	} {
		faults = append(faults, fmt.Sprintf(`{name: fault-%d, spec: {target: %s, stopIf: {queries: [%s, %s, %s, %s]}, %s}}`,
			i, targetWithSecrets, query(i, 0), query(i, 1), query(i, 2), query(i, 3), action))
	}
	spec := fmt.Sprintf(
		`{template: {spec: {target: %s}}, faults: [%s], repeat: 1, matrix: [{name: a, settings: [{name: all,
		  config: {hz: "10"}, ioThreads: {count: 2}, resources: {cpu: 1},
		replicaScale: {by: 1}}, {name: live, ioThreads: {count: 2, method: Live}}]}, {name: b, path: target.database,
		  values: [1]}, {name: c, path: target.auth, values: ["{}"]},
		{name: d, path: faults.fault-3.target.tls, values: ["{}"]}, {name: e, path: faults.fault-1.stopIf.outage,
		  values: [1s]}]}`, targetWithSecrets, strings.Join(faults, ", "))
	needs := ofFaults("delete pods", "create pods/exec", "create pods", "patch nodes", "patch statefulsets.apps",
		"create networkchaos.chaos-mesh.org", "create stresschaos.chaos-mesh.org",
		"create timechaos.chaos-mesh.org", "get secrets", "get secret a0", "get secret a1", "get secret a2", "get secret a3")
	needs = append(needs, secretsOfTarget...)
	userWith(t, "RedisExperiment", newNamespace(t), needs...).isAllowed("RedisExperiment", spec)
	userWith(t, "RedisExperimentSchedule", newNamespace(t),
		ofSchedule(append(needs, "get secret chat")...)...).isAllowed("RedisExperimentSchedule",
		inSchedule(spec, "notify: {urlSecretRef: {name: chat, key: url}}"))
}

// Secrets are asked for one by one, up to a number.
func TestManySecretsOfAnExperiment(t *testing.T) {
	namespace := newNamespace(t)
	has := append(ofFaults("delete pods"), secretsOfTarget...)
	of := func(n int) string {
		var queries []string
		for i := range n - len(secretsOfTarget) {
			has = append(has, fmt.Sprintf("get secret query-%d", i))
			queries = append(queries,
				fmt.Sprintf(`{name: q%d, query: up, below: "1", prometheus: {url: "http://a", authSecretRef: {name: query-%d}}}`, i,
					i))
		}
		half := len(queries) / 2
		fault := `{name: %s, spec: {action: {type: PodKill}, stopIf: {queries: [%s]}}}`
		return fmt.Sprintf(`{template: {spec: {target: %s}}, faults: [%s, %s]}`, targetWithSecrets,
			fmt.Sprintf(fault, "one", strings.Join(queries[:half], ", ")),
			fmt.Sprintf(fault, "two", strings.Join(queries[half:], ", ")))
	}
	most, more := of(rights.MostNames), of(rights.MostNames+1)
	u := userWith(t, "RedisExperiment", namespace, has...)
	u.isAllowed("RedisExperiment", most)
	u.isRefusedBecause("RedisExperiment", more,
		fmt.Sprintf("get secrets in namespace %s (the spec names more than %d)", namespace, rights.MostNames))
	userWith(t, "RedisExperiment", namespace, append(has, "get secrets")...).isAllowed("RedisExperiment", more)
}

// The operator creates the children of experiments, for which their creators were asked: it has no right to pods/exec.
// It is known by a right, and so in any namespace and by any name; nobody else is the operator.
func TestTheOperatorIsNotAsked(t *testing.T) {
	const failover = `{action: {type: Failover}}`
	kinds := map[string]string{
		"RedisFault":              failover,
		"RedisLoadTest":           `{}`,
		"RedisExperiment":         `{faults: [{name: failover, spec: ` + failover + `}]}`,
		"RedisExperimentSchedule": `{}`,
	}
	for kind, spec := range kinds {
		t.Run(kind, func(t *testing.T) {
			namespace := newNamespace(t)
			const operator = "system:serviceaccount:chaos:any-name"
			u := userNamed(t, operator, kind, namespace)
			u.isRefusedBecause(kind, spec, "needs the permission to create")
			u.grantOnCluster(rights.ActForOthers.String())
			u.isAllowed(kind, spec)
			userNamed(t, operator+"-2", kind, namespace).isRefusedBecause(kind, spec, "needs the permission to create")
		})
	}
}

// isRefusedBecause: the message contains a text, and names the user.
func (u *user) isRefusedBecause(kind, spec, why string) {
	u.Helper()
	o := object(u.T, kind, "permissions", spec)
	o.SetNamespace(u.namespace)
	u.eventually(", which user "+u.name+" does not have", func() error {
		err := u.Create(u.Context(), o.DeepCopy(), client.DryRunAll)
		if err != nil && !strings.Contains(err.Error(), why) {
			return errors.New("it does not contain " + why + ": " + err.Error())
		}
		return err
	})
}

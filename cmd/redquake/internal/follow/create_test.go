package follow

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// What a run waits for: all pods of the present spec, and Jobs that complete.
func TestReadiness(t *testing.T) {
	for name, tc := range map[string]struct {
		object string
		now    string
		ready  bool
		failed string
	}{
		"no status yet": {
			`{kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 3}}`,
			"0 of 3 pods are ready", false, "",
		},
		"one by default": {
			`{kind: Deployment, metadata: {generation: 1}, spec: {}, status: {observedGeneration: 1, readyReplicas: 1,
			  updatedReplicas: 1}}`, "1 of 1 pods are ready", true, "",
		},
		"pods of an earlier spec": {
			`{kind: StatefulSet, metadata: {generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 2,
			  readyReplicas: 1, updatedReplicas: 0}}`, "1 of 1 pods are ready", false, "",
		},
		"of an earlier generation": {
			`{kind: StatefulSet, metadata: {generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 1,
			  readyReplicas: 1, updatedReplicas: 1}}`, "1 of 1 pods are ready", false, "",
		},
		"a Job that runs": {`{kind: Job, status: {active: 1}}`, "not complete", false, ""},
		"a Job that is to fail": {
			`{kind: Job, status: {conditions: [{type: FailureTarget, status: "True"}]}}`,
			"not complete", false, "",
		},
		"a Job that is complete": {
			`{kind: Job, status: {conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True"}]}}`,
			"", true, "",
		},
		"a Job that failed": {
			`{kind: Job, status: {conditions: [{type: Failed, status: "True", message: no more attempts}]}}`, "", false,
			"failed: no more attempts",
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			text, err := yaml.YAMLToJSON([]byte(tc.object))
			if err != nil {
				t.Fatal(err)
			}
			if err := u.UnmarshalJSON(text); err != nil {
				t.Fatal(err)
			}
			now, ready, err := readiness(u)
			failed := ""
			if err != nil {
				failed = err.Error()
			}
			if now != tc.now || ready != tc.ready || failed != tc.failed {
				t.Errorf("%q, %v, %q; want %q, %v, %q", now, ready, failed, tc.now, tc.ready, tc.failed)
			}
		})
	}
}

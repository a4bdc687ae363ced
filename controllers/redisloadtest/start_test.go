package redisloadtest

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/redquake/redquake/api/v1alpha1"
)

// A child's name that is taken: the message says by what, and what to do.
func TestTakenName(t *testing.T) {
	owner := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Name: "checkout", UID: "u2"}}
	by := func(name, uid string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: "RedisLoadTest", Name: name, UID: types.UID(uid), Controller: new(true)}}
	}
	for name, tc := range map[string]struct {
		found corev1.Secret
		says  string // "" = it is the owner's
	}{
		"its own": {found: corev1.Secret{ObjectMeta: metav1.ObjectMeta{OwnerReferences: by("checkout", "u2")}}},
		"being deleted": {
			found: corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{OwnerReferences: by("checkout", "u2"), DeletionTimestamp: new(metav1.Now())},
			},
			says: "is being deleted",
		},
		"without an owner": {says: "has no owner, as after kubectl delete --cascade=orphan. Delete it"},
		"of an earlier one": {
			found: corev1.Secret{ObjectMeta: metav1.ObjectMeta{OwnerReferences: by("checkout", "u1")}},
			says:  "belongs to an earlier RedisLoadTest checkout (u1)",
		},
		"of somebody else's": {
			found: corev1.Secret{ObjectMeta: metav1.ObjectMeta{OwnerReferences: by("other", "u3")}},
			says:  "belongs to RedisLoadTest other",
		},
	} {
		if got := taken(&tc.found, owner); (got == "") != (tc.says == "") || !strings.Contains(got, tc.says) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// A policy that refuses the Job most often wants a label: the message names the field for it.
func TestRefusalOfTheJobNamesTheField(t *testing.T) {
	const labels = "Labels of the Job are in jobLabels"
	for text, want := range map[string]string{
		`jobs.batch "run-load" is forbidden: ValidatingAdmissionPolicy 'team' with binding 'team' denied ` +
			`request: every workload needs the label team`: labels,
		`admission webhook "validate.kyverno.svc" denied the request: the label team is required`: labels,
		`Job.batch "run-load" is invalid: spec.template.spec.affinity: Invalid value`:             "spec.pods: Job.batch",
	} {
		if got := refusedJob(errors.New(text)); !strings.Contains(got, want) || !strings.Contains(got, text) {
			t.Errorf("%q: %q", text, got)
		}
	}
}

//go:build integration

package admission_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Each refusal names the field and the reason.
type refusal struct {
	name   string
	change string // to the smallest spec
	field  string
	why    string
}

func TestRefused(t *testing.T) {
	for kind, cases := range map[string][]refusal{
		"RedisLoadTest": refusedLoadTests, "RedisFault": refusedFaults, "RedisExperiment": refusedExperiments,
		"RedisExperimentSchedule": append(refusedSchedules, inTemplates(refusedExperiments)...),
	} {
		t.Run(kind, func(t *testing.T) {
			for _, test := range cases {
				t.Run(test.name, func(t *testing.T) {
					o := object(t, kind, name(t), test.change)
					expectFileRefused(t, o, test.field, test.why)
					expectRefusal(t, strict.Create(t.Context(), o, client.DryRunAll), test.field, test.why)
				})
			}
		})
	}
}

// A name that leaves no room for its children's is refused at once, not when the children cannot be made.
func TestNameTooLong(t *testing.T) {
	for kind, longest := range map[string]int{
		"RedisLoadTest":           52,
		"RedisFault":              46,
		"RedisExperiment":         28,
		"RedisExperimentSchedule": 18,
	} {
		t.Run(kind, func(t *testing.T) {
			fits := object(t, kind, strings.Repeat("x", longest), `{}`)
			if err := strict.Create(t.Context(), fits, client.DryRunAll); err != nil {
				t.Errorf("%d characters: %v", longest, err)
			}
			err := strict.Create(t.Context(), object(t, kind, strings.Repeat("x", longest+1), `{}`), client.DryRunAll)
			expectRefusal(t, err, "metadata: Invalid value", "the name must be at most")
		})
	}
}

func TestBesideItself(t *testing.T) {
	o := object(t, "RedisFault", "alone", `{beside: [other, alone]}`)
	expectRefusal(t, strict.Create(t.Context(), o, client.DryRunAll), "spec.beside", "a fault cannot act beside itself")
}

func expectRefusal(t *testing.T, err error, field, why string) {
	t.Helper()
	switch {
	case err == nil:
		t.Error("accepted")
	case !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err):
		t.Errorf("refused for another reason: %v", err)
	case !strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), why):
		t.Errorf("refused with\n%v\nwhich does not contain %q and %q", err, field, why)
	}
}

package problem

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/redquake/redquake/api/v1alpha1"
)

func TestRefusal(t *testing.T) {
	t.Parallel()
	kind := v1alpha1.GroupVersion.WithKind("RedisLoadTest").GroupKind()
	at := field.NewPath("spec", "workload")
	for _, test := range []struct {
		err  error
		want string
	}{
		{
			apierrors.NewInvalid(kind, "x", field.ErrorList{field.Invalid(at, `s3"cret`, "must be short")}),
			"spec.workload: must be short",
		},
		{
			apierrors.NewInvalid(kind, "x", field.ErrorList{field.Invalid(at, 5, "must be more")}),
			"spec.workload: must be more",
		},
		{
			apierrors.NewInvalid(kind, "x", field.ErrorList{
				field.Invalid(at, map[string]string{"user": "me", "password": "a: s3cret"}, "must be: short"),
			}),
			"spec.workload: must be: short",
		},
		{
			apierrors.NewInvalid(kind, "x", field.ErrorList{field.Invalid(at, []string{"a: s3cret", "b"}, "must be short")}),
			"spec.workload: must be short",
		},
		{
			apierrors.NewInvalid(kind, "x", field.ErrorList{field.Invalid(at, nil, "must be short")}),
			"spec.workload: must be short",
		},
		{
			apierrors.NewInvalid(kind, "x", field.ErrorList{field.NotSupported(at, "s3cret", []string{"a", "b"})}),
			`spec.workload: supported values: "a", "b"`,
		},
		{apierrors.NewInvalid(kind, "x", field.ErrorList{field.Duplicate(at, "s3cret")}), "spec.workload: Duplicate value"},
		{
			apierrors.NewInvalid(kind, "x", field.ErrorList{field.Required(at, "set it")}),
			"spec.workload: Required value: set it",
		},
		{errors.New("other"), "other"},
	} {
		if got := Refusal(test.err); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

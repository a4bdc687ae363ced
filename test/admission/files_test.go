//go:build integration

package admission_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/manifest"
)

// fromFile reads an object as the command line reads it from a file.
func fromFile(t *testing.T, o *unstructured.Unstructured) (manifest.Object, error) {
	t.Helper()
	into := empty(o.GetKind())
	return into, manifest.Decode([]byte(text(t, o.Object)), into)
}

func empty(kind string) manifest.Object {
	switch kind {
	case "RedisFault":
		return &v1alpha1.RedisFault{}
	case "RedisExperiment":
		return &v1alpha1.RedisExperiment{}
	case "RedisExperimentSchedule":
		return &v1alpha1.RedisExperimentSchedule{}
	}
	return &v1alpha1.RedisLoadTest{}
}

// expectFileRefused checks that a file is refused as by the API server: with the same field and reason, but without an
// object of the cluster.
func expectFileRefused(t *testing.T, o *unstructured.Unstructured, field, why string) {
	t.Helper()
	_, err := fromFile(t, o)
	if err == nil {
		err = errors.New("nothing")
	}
	if !strings.Contains(err.Error(), strings.TrimPrefix(field, "<nil>")) || !strings.Contains(err.Error(), why) {
		t.Errorf("from a file it is refused with\n%v\nwhich does not contain %q and %q", err, field, why)
	}
}

// expectSameDefaults compares an object read from a file with what the API server stored.
func expectSameDefaults(t *testing.T, sent, stored *unstructured.Unstructured) {
	t.Helper()
	read, err := fromFile(t, sent)
	if err != nil {
		t.Errorf("from a file: %v", err)
		return
	}
	want := empty(stored.GetKind())
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(specOf(want), specOf(read)); diff != "" {
		t.Errorf("from a file (-stored +read):\n%s", diff)
	}
}

func specOf(o runtime.Object) any {
	switch o := o.(type) {
	case *v1alpha1.RedisLoadTest:
		return o.Spec
	case *v1alpha1.RedisFault:
		return o.Spec
	case *v1alpha1.RedisExperiment:
		return o.Spec
	case *v1alpha1.RedisExperimentSchedule:
		return o.Spec
	}
	return fmt.Sprintf("a %T", o)
}

package redisloadtest

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/state"
	"github.com/redquake/redquake/internal/children"
	"github.com/redquake/redquake/internal/result"
	"github.com/redquake/redquake/internal/result/document"
	"github.com/redquake/redquake/internal/testing/apitest"
)

// The result is stored beside the record, and a later checkpoint of the record leaves it there.
func TestResultBesideTheRecord(t *testing.T) {
	test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run", UID: "u"}}
	cluster := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).
		WithObjects(children.ResultsConfigMap(test, []byte("record"))).Build()
	store := resultsStore{client: cluster, test: test}
	load := &result.Load{Version: result.LoadVersion, Latency: result.ServiceTime, Verdict: "Pass"}
	if err := store.saveResult(t.Context(), load); err != nil {
		t.Fatal(err)
	}
	if err := state.StoreResult(t.Context(), cluster, test, func(stored *corev1.ConfigMap) error {
		stored.BinaryData[children.ResultsFaultsKey] = []byte("of faults")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := store.Save(t.Context(), []byte("a later one")); err != nil {
		t.Fatal(err)
	}
	stored := &corev1.ConfigMap{}
	if err := cluster.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: children.ResultsName("run")},
		stored); err != nil {
		t.Fatal(err)
	}
	read, err := document.DecodeLoad([]byte(stored.Data[children.ResultsDocumentKey]))
	if err != nil || read.Verdict != "Pass" || string(stored.BinaryData[children.ResultsSeriesKey]) != "a later one" ||
		string(stored.BinaryData[children.ResultsFaultsKey]) != "of faults" {
		t.Errorf("%+v, %v, %q", read, err, stored.BinaryData)
	}
}

// A run ends without its document if the API server never takes that, and not before it is stored if it may take it
// later.
func TestResultThatIsRefused(t *testing.T) {
	results := schema.GroupResource{Resource: "configmaps"}
	for name, tt := range map[string]struct {
		refusal error
		again   bool
	}{
		"forbidden":  {apierrors.NewForbidden(results, "run-results", errors.New("by a policy")), false},
		"invalid":    {apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "run-results", nil), false},
		"too large":  {apierrors.NewRequestEntityTooLargeError("4 MiB"), false},
		"a conflict": {apierrors.NewConflict(results, "run-results", errors.New("of a checkpoint")), true},
		"no server":  {errors.New("connection refused"), true},
	} {
		t.Run(name, func(t *testing.T) {
			test := &v1alpha1.RedisLoadTest{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "run", UID: "u"}}
			refuses := interceptor.Funcs{
				Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
					return tt.refusal
				},
			}
			cluster := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).
				WithObjects(children.ResultsConfigMap(test, []byte("record"))).WithInterceptorFuncs(refuses).Build()
			err := resultsStore{
				client: cluster,
				test:   test,
			}.saveResult(t.Context(), &result.Load{Version: result.LoadVersion, Latency: result.ServiceTime})
			if (err != nil) != tt.again ||
				err != nil && !strings.Contains(err.Error(), "store the result in ConfigMap run-results: ") {
				t.Errorf("error %v, want one: %v", err, tt.again)
			}
		})
	}
}

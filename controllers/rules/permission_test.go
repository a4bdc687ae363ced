package rules

import (
	"context"
	"errors"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
	"github.com/redquake/redquake/internal/testing/apitest"
)

// What the operator lacks is named together with the role that grants it; a kind that only sends commands asks nothing.
func TestPermitted(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{
		Group:    "authorization.k8s.io",
		Resource: "selfsubjectaccessreviews",
	}, "", errors.New("no such right"))
	for _, tc := range []struct {
		name   string
		action v1alpha1.Action
		lacks  []string // verb and resource, and the namespace
		fails  error
		asks   int
		says   string // "" = permitted
		passes bool   // the error is retried
	}{
		{name: "everything", action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}, asks: 1},
		{name: "commands only", action: v1alpha1.Action{Type: v1alpha1.FaultConfig}, lacks: []string{"delete pods in shop"}},
		{
			name: "pods", action: v1alpha1.Action{Type: v1alpha1.FaultPodKill}, lacks: []string{"delete pods in shop"}, asks: 1,
			says: "the operator may not delete pods in namespace shop: bind the role redquake-manager-podkill-role to its ServiceAccount there",
		},
		{
			name:   "a subresource",
			action: v1alpha1.Action{Type: v1alpha1.FaultResources},
			lacks:  []string{"patch pods/resize in shop"},
			asks:   1,
			says:   "may not patch pods/resize in namespace shop: bind the role redquake-manager-resources-role",
		},
		{
			name:   "two rights",
			action: v1alpha1.Action{Type: v1alpha1.FaultIOThreads},
			lacks:  []string{"delete pods in shop", "patch statefulsets in shop"},
			asks:   2,
			says:   "may not patch statefulsets.apps, delete pods in namespace shop",
		},
		{
			name:   "of a live change",
			action: v1alpha1.Action{Type: v1alpha1.FaultIOThreads, IOThreads: &v1alpha1.IOThreads{Method: v1alpha1.ApplyLive}},
			lacks:  []string{"delete pods in shop"},
		},
		{
			name: "nodes", action: v1alpha1.Action{Type: v1alpha1.FaultNodeLoss}, lacks: []string{"patch nodes in "}, asks: 4,
			says: "the operator may not patch nodes: bind the ClusterRole redquake-cluster-nodeloss-role to its ServiceAccount",
		},
		{
			name:   "no right to ask",
			action: v1alpha1.Action{Type: v1alpha1.FaultPodKill},
			fails:  forbidden,
			asks:   1,
			says:   "may not create selfsubjectaccessreviews",
		},
		{
			name:   "no answer",
			action: v1alpha1.Action{Type: v1alpha1.FaultPodKill},
			fails:  errors.New("connection refused"),
			asks:   1,
			says:   "connection refused",
			passes: true,
		},
	} {
		asked := 0
		api := fake.NewClientBuilder().WithScheme(apitest.Scheme(t)).WithInterceptorFuncs(interceptor.Funcs{
			Create: func(_ context.Context, _ client.WithWatch, object client.Object, _ ...client.CreateOption) error {
				asked++
				review := object.(*authorizationv1.SelfSubjectAccessReview)
				a := review.Spec.ResourceAttributes
				text := a.Verb + " " + strings.TrimSuffix(a.Resource+"/"+a.Subresource, "/") + " in " + a.Namespace
				review.Status.Allowed = true
				for _, lacked := range tc.lacks {
					review.Status.Allowed = review.Status.Allowed && lacked != text
				}
				return tc.fails
			},
		}).Build()
		f := &v1alpha1.RedisFault{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop"},
			Spec:       v1alpha1.RedisFaultSpec{Action: tc.action},
		}
		err := Permitted(t.Context(), api, f)
		if asked != tc.asks {
			t.Errorf("%s: %d questions, want %d", tc.name, asked, tc.asks)
		}
		if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", tc.name, err)
		}
		if shown, _ := problem.From(err); tc.says != "" && (shown == nil) != tc.passes ||
			shown != nil && (shown.Reason != v1alpha1.ReasonNotPermitted || !shown.Lasting) {
			t.Errorf("%s: %+v", tc.name, shown)
		}
	}
}

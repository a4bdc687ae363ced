package doctor

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/internal/fault/declared"
	"github.com/redquake/redquake/internal/rights"
)

// askRights asks what the user may do, by the declarations of the kinds, and what the operator may
// do, if the user may ask that.
func (f *Facts) askRights(ctx context.Context, c *kube.Client) error {
	f.User, f.Operator = map[rights.Right]bool{}, map[rights.Right]bool{}
	own := []rights.Right{rights.CreateLoadTests, rights.CreateFaults, rights.RunJobs}
	for _, kind := range declared.All {
		for _, need := range kind.Needs {
			own = append(own, need.Right)
			if need.Or != nil {
				own = append(own, *need.Or)
			}
		}
	}
	var err error
	if f.UserUnasked, err = ask(ctx, c, f.User, own, f.attributes, ""); err != nil {
		return err
	}
	if len(f.Managers) == 0 {
		return nil
	}
	m := &f.Managers[0]
	user := "system:serviceaccount:" + m.Namespace + ":" + m.ServiceAccount
	var operators []rights.Right
	for _, kind := range declared.All {
		operators = append(operators, kind.Rights(&v1alpha1.Action{Type: kind.Type})...)
	}
	_, err = ask(ctx, c, f.Operator, operators, f.attributes, user)
	return err
}

func (f *Facts) attributes(right rights.Right) *authorizationv1.ResourceAttributes {
	resource, subresource := right.Parts()
	attributes := &authorizationv1.ResourceAttributes{
		Verb:        right.Verb,
		Group:       right.Group,
		Resource:    resource,
		Subresource: subresource,
	}
	if !right.Anywhere() {
		attributes.Namespace = f.Namespace
	}
	return attributes
}

// ask asks the API server about rights of the user himself, or of somebody else. why says why it
// does not tell.
func ask(
	ctx context.Context, c *kube.Client, into map[rights.Right]bool, all []rights.Right,
	attributes func(rights.Right) *authorizationv1.ResourceAttributes, user string,
) (why string, err error) {
	resource, kind := "selfsubjectaccessreviews", "SelfSubjectAccessReview"
	if user != "" {
		resource, kind = "subjectaccessreviews", "SubjectAccessReview"
	}
	for _, right := range all {
		if _, ok := into[right]; ok {
			continue
		}
		review := &authorizationv1.SubjectAccessReview{
			TypeMeta: metav1.TypeMeta{APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: kind},
			Spec: authorizationv1.SubjectAccessReviewSpec{
				ResourceAttributes: attributes(right),
				User:               user,
			},
		}
		if user != "" {
			review.Spec.Groups = []string{"system:serviceaccounts", "system:authenticated"}
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(review)
		if err != nil {
			return "", err
		}
		answer, err := c.Create(ctx, authorizationv1.SchemeGroupVersion.WithResource(resource), "",
			&unstructured.Unstructured{Object: content})
		if err != nil {
			return unasked(err, "create "+resource)
		}
		allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed")
		into[right] = allowed
	}
	return "", nil
}

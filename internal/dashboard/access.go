package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/redquake/redquake/api/v1alpha1"
)

// statusError is an error with the response that it gets.
type statusError struct {
	code    int
	message string
}

func (e *statusError) Error() string {
	return e.message
}

// authenticate is who sent a request, by its bearer token.
func (h *Handler) authenticate(r *http.Request) (user.Info, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || strings.TrimSpace(token) == "" {
		return nil, &statusError{
			http.StatusUnauthorized,
			"This page needs a bearer token of the cluster in the header Authorization. Open it by: redquake dashboard",
		}
	}
	// The authenticator removes the header from the request that it gets.
	response, ok, err := h.Authenticator.AuthenticateRequest(r.Clone(r.Context()))
	switch {
	case ok:
		return response.User, nil
	case err != nil && !refused(err):
		h.Log.Error(err, "failed to authenticate a reader of the dashboard")
		return nil, &statusError{
			http.StatusServiceUnavailable,
			"The API server does not say whose token this is: try again.",
		}
	}
	return nil, &statusError{
		http.StatusUnauthorized,
		"The API server does not accept this bearer token: it is invalid, or has expired.",
	}
}

// refused reports whether an error of a TokenReview is about the token, not about asking for the
// review.
func refused(err error) bool {
	list, ok := errors.AsType[utilerrors.Aggregate](err)
	if ok {
		for _, one := range list.Errors() {
			if !refused(one) {
				return false
			}
		}
		return true
	}
	if _, broken := errors.AsType[net.Error](err); broken {
		return false
	}
	return apierrors.ReasonForError(err) == metav1.StatusReasonUnknown &&
		!errors.Is(err, context.Canceled)
}

// permission is what a reader must be allowed to do.
type permission struct{ verb, resource, namespace, name string }

func (p permission) String() string {
	text := p.verb + " " + p.resource + "." + v1alpha1.GroupVersion.Group
	if p.name != "" {
		text += " " + p.name
	}
	if p.namespace == "" {
		return text + " in all namespaces"
	}
	return text + " in namespace " + p.namespace
}

// ofPage are the permissions that the page of an object needs. Its report has the figures of the
// load tests and the faults that belong to it.
func ofPage(key Key) []permission {
	return []permission{
		{"get", key.Resource, key.Namespace, key.Name},
		{"list", LoadTests, key.Namespace, ""},
		{"list", Faults, key.Namespace, ""},
	}
}

// may reports whether the API server permits something.
func (h *Handler) may(ctx context.Context, who user.Info, p permission) (bool, error) {
	decision, _, err := h.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User:            who,
		Verb:            p.verb,
		Namespace:       p.namespace,
		APIGroup:        v1alpha1.GroupVersion.Group,
		APIVersion:      v1alpha1.GroupVersion.Version,
		Resource:        p.resource,
		Name:            p.name,
		ResourceRequest: true,
	})
	if err != nil && decision != authorizer.DecisionAllow {
		h.Log.Error(err, "failed to authorize a reader of the dashboard", "permission", p.String())
		return false, &statusError{
			http.StatusServiceUnavailable,
			"The API server does not say what you may do: try again.",
		}
	}
	return decision == authorizer.DecisionAllow, nil
}

// require returns an error that names the first permission that is missing.
func (h *Handler) require(ctx context.Context, who user.Info, list ...permission) error {
	for _, p := range list {
		ok, err := h.may(ctx, who, p)
		if err != nil {
			return err
		}
		if !ok {
			return &statusError{
				http.StatusForbidden,
				fmt.Sprintf("This page needs the permission to %s, which user %s does not have.", p,
					who.GetName()),
			}
		}
	}
	return nil
}

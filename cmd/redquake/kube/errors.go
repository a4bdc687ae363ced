package kube

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Explain adds what was being done to an error of the API server. The API server's own sentence
// names the permission that is missing, the field that is invalid, or the admission policy that
// refuses; it is kept as it is.
func Explain(err error, doing string) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: not permitted: %w", doing, err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%s: the cluster does not accept the credentials of the kubeconfig: %w", doing,
			err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// Refused reports whether the API server has refused an object by its content or its creator, so
// that trying again is of no use.
func Refused(err error) bool {
	_, unknown := errors.AsType[*ErrNoKind](err)
	return unknown || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) ||
		apierrors.IsBadRequest(err) || apierrors.IsConflict(err)
}

// IsNotPermitted reports whether the user lacks a permission.
func IsNotPermitted(err error) bool {
	return apierrors.IsForbidden(err)
}

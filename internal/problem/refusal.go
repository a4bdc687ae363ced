package problem

import (
	"errors"
	"fmt"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Refuses reports whether an error means that the API server does not accept an object, so that trying again does not help.
func Refuses(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

// Refusal is the API server's message, without the name of the object, and without the value, which may be a secret.
func Refusal(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil && len(status.Status().Details.Causes) > 0 {
		cause := status.Status().Details.Causes[0]
		return fmt.Sprintf("%s: %s", cause.Field, refusedValue.ReplaceAllString(cause.Message, ""))
	}
	return err.Error()
}

// refusedValue is how a cause begins: with the value, as text or as JSON.
var refusedValue = regexp.MustCompile(`^(Invalid|Unsupported|Duplicate) value: ("(?:[^"\\]|\\.)*"|[^:]*)(: )?`)

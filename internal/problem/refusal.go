package problem

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Refuses reports whether an error means that the API server does not accept an object, so that
// trying again does not help.
func Refuses(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

// Refusal is the API server's message, without the name of the object, and without the value, which
// may be a secret.
func Refusal(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil &&
		len(status.Status().Details.Causes) > 0 {
		cause := status.Status().Details.Causes[0]
		return fmt.Sprintf("%s: %s", cause.Field, withoutValue(cause.Message))
	}
	return err.Error()
}

// refusedValue is how a cause with a value begins.
var refusedValue = regexp.MustCompile(`^(?:Invalid|Unsupported|Duplicate) value: `)

// withoutValue is the message of a cause without the value at its begin: JSON, or text up to a
// colon.
func withoutValue(message string) string {
	begin := refusedValue.FindString(message)
	if begin == "" {
		return message
	}
	rest := message[len(begin):]
	value := json.NewDecoder(strings.NewReader(rest))
	if err := value.Decode(new(json.RawMessage)); err == nil {
		rest = rest[value.InputOffset():]
	}
	_, said, _ := strings.Cut(rest, ": ")
	return cmp.Or(said, strings.TrimSuffix(begin, ": "))
}

// Package problem is the error that objects report in their status: a reason for conditions, and a
// message for people.
package problem

import (
	"fmt"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Problem is why an object cannot continue: a reason for conditions and a message that names the
// field or the object.
type Problem struct {
	Reason  string
	Message string
	Lasting bool // it does not pass by waiting
}

func (p *Problem) Error() string {
	return p.Message
}

// Invalid is the problem of a spec that cannot work.
func Invalid(format string, words ...any) error {
	return &Problem{
		Reason:  v1alpha1.ReasonInvalidSpec,
		Message: fmt.Sprintf(format, words...),
		Lasting: true,
	}
}

// Unsupported is the problem of a fault that the server or the cluster does not support.
func Unsupported(format string, words ...any) error {
	return &Problem{
		Reason:  v1alpha1.ReasonNotSupported,
		Message: fmt.Sprintf(format, words...),
		Lasting: true,
	}
}

// TooWide is the problem of a fault that a guard refuses.
func TooWide(format string, words ...any) *Problem {
	return &Problem{
		Reason:  v1alpha1.ReasonBlastRadius,
		Message: fmt.Sprintf(format, words...),
		Lasting: true,
	}
}

// NotYet is the problem of a target that may become suitable for the fault.
func NotYet(format string, words ...any) error {
	return &Problem{Reason: v1alpha1.ReasonInjectionFailed, Message: fmt.Sprintf(format, words...)}
}

// NoTarget is the problem of a target that does not exist, and may be created.
func NoTarget(format string, words ...any) error {
	return &Problem{Reason: v1alpha1.ReasonNoTarget, Message: fmt.Sprintf(format, words...)}
}

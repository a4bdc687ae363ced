package contract

import (
	"fmt"

	"github.com/redquake/redquake/api/v1alpha1"
)

// Description is a fault on one target, in sentences with actual values.
type Description struct {
	Action     string // what is done
	Revert     string // how that is reverted; "" = there is nothing to revert
	SelfEnding string // what ends without the operator; "" = nothing does
}

// DescribeRecord describes a fault from the record of a target. Without a record that can be read,
// nothing is done.
func DescribeRecord[T any](
	target *v1alpha1.FaultTarget, describe func(record T) Description,
) Description {
	record, recorded, err := Load[T](target)
	switch {
	case err != nil:
		return Description{Action: fmt.Sprintf("nothing: %v", err)}
	case !recorded:
		return Description{Action: fmt.Sprintf("nothing: pod %s has no record", target.Pod)}
	}
	return describe(record)
}

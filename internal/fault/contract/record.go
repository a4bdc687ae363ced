package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/problem"
)

// RecordVersion is the version of the records that this operator writes, and the only one that it
// reads. It is increased by every change of a record's type that an older operator could misread.
const RecordVersion = 1

// LongestRecord is the size limit of a record in the status, in bytes.
const LongestRecord = 16384

// Load reads the record for the revert of a target into the kind's own type. found is false where
// none was stored.
func Load[R any](target *v1alpha1.FaultTarget) (record R, found bool, err error) {
	stored := target.Revert
	if stored == nil {
		return record, false, nil
	}
	if stored.Version != RecordVersion {
		return record, false, fmt.Errorf(
			"the record of pod %s in status.targets[].revert has version %d, and this operator reads "+
				"version %d: run the version of the operator that injected the fault",
			target.Pod, stored.Version, RecordVersion)
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(stored.Data)))
	// a record of another kind, or of another version with the same number
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&record)
	if err == nil && decoder.More() {
		err = errors.New("there is data after its end")
	}
	if err != nil {
		var none R
		return none, false, fmt.Errorf(
			"the record of pod %s in status.targets[].revert cannot be read as %s: %w", target.Pod,
			reflect.TypeFor[R]().Name(), err)
	}
	return record, true, nil
}

// Save puts the record for the revert into the target. The controller stores it. A record that is
// too long is a Problem, and the one before stays.
func Save[R any](target *v1alpha1.FaultTarget, record R) error {
	data, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encode the record of pod %s: %w", target.Pod, err)
	}
	if len(data) > LongestRecord {
		return problem.Unsupported(
			"the record for the revert of the fault on pod %s has %d bytes, and at most %d can be stored",
			target.Pod, len(data), LongestRecord)
	}
	target.Revert = &v1alpha1.RevertRecord{Version: RecordVersion, Data: string(data)}
	return nil
}

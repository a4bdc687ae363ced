package faultrun

import (
	"encoding/json"
	"fmt"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/digest"
	"github.com/redquake/redquake/internal/problem"
)

// An object that does not fit into one request of the API server to etcd, 1.5 MiB by default,
// cannot be stored: neither what was injected nor what was reverted. A fault whose records are too
// large is therefore refused before it breaks anything, and the texts that may be added later are
// shorter the more targets there are.
const (
	// maxRecords is the size of all records of a fault. The rest of 1.5 MiB is for the texts of its
	// targets, conditions, timeline and spec.
	maxRecords = 950 << 10
	// addedLater is what a record grows by when it is injected and reverted: instants, and the entries
	// of its fields in metadata.managedFields.
	addedLater = 550
	// fullTexts is the number of targets up to which each can have texts of full length.
	fullTexts = 80

	// MaxError is the length of an error of a target, in bytes.
	MaxError = 1024
	// MaxProgress is that of what is in progress.
	MaxProgress = 512
	// MaxCommand is that of a command for a person.
	MaxCommand = 2048
)

// CheckSize returns a Problem if the records of the targets could not be stored together with what
// is added later.
func CheckSize(targets []v1alpha1.FaultTarget) error {
	size := 0
	for i := range targets {
		text, err := json.Marshal(&targets[i])
		if err != nil {
			return fmt.Errorf("encode the record of pod %s: %w", targets[i].Pod, err)
		}
		size += len(text) + len(targets[i].Pod) + addedLater
	}
	if size > maxRecords {
		return problem.Invalid(
			"spec.select: the revert records of %d targets need %d KiB of the status, which holds %d KiB: "+
				"select at most %d targets, and use several faults",
			len(targets), size>>10, maxRecords>>10, len(targets)*maxRecords/size)
	}
	return nil
}

// Shorten limits a text of one of several targets.
func Shorten(text string, most, targets int) string {
	if targets > fullTexts {
		most = most * fullTexts / targets
	}
	return digest.Truncate(text, most)
}

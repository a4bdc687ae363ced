package result

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ErrNoRoom means that the results of the faults do not fit into their place.
var ErrNoRoom = errors.New("no room for the result of the fault")

// maxFaultsText bounds the results of faults that are read, uncompressed: those that KeepFault
// compresses into its limit have a tenth.
const maxFaultsText = 8 << 20

// KeepFault puts the result of a fault into those that are kept of a load, in place of an earlier
// one of the same fault and of those of an earlier load. kept is what KeepFault returned before,
// nil at first; the error is ErrNoRoom if the results would take more than limit bytes.
func KeepFault(kept []byte, f *Fault, limit int) ([]byte, error) {
	faults, err := KeptFaults(kept)
	if err != nil {
		return nil, err
	}
	faults = slices.DeleteFunc(faults, func(o Fault) bool {
		return !o.Start.Equal(f.Start) ||
			o.UID == f.UID && o.Name == f.Name
	})
	faults = append(faults, *f)
	slices.SortStableFunc(faults, func(a, b Fault) int { return int(a.At - b.At) })
	text, err := json.Marshal(faults)
	if err != nil {
		return nil, fmt.Errorf("encode the result of fault %s: %w", f.Name, err)
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := zip.Write(text); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	if packed.Len() > limit {
		return nil, fmt.Errorf(
			"%w: with that of %s the results of %d faults take %d bytes; allowed are %d", ErrNoRoom, f.Name,
			len(faults), packed.Len(), limit)
	}
	return packed.Bytes(), nil
}

// Short is the result without what its status has, too: operations, phases and all targets but the
// first ones.
func (f *Fault) Short() *Fault {
	short := *f
	short.Operations, short.Phases, short.Targets = nil, nil, firstOf(f.Targets)
	return &short
}

// KeptFaults reads what KeepFault returned: the results of the faults on a load, in the order of
// their injection. It fails if one is of another version.
func KeptFaults(kept []byte) ([]Fault, error) {
	if len(kept) == 0 {
		return nil, nil
	}
	zip, err := gzip.NewReader(bytes.NewReader(kept))
	if err != nil {
		return nil, fmt.Errorf("the results of the faults are not compressed JSON: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(zip, maxFaultsText))
	if err != nil {
		return nil, fmt.Errorf("the results of the faults are not compressed JSON: %w", err)
	}
	var heads []struct {
		Version int    `json:"version"`
		Name    string `json:"name"`
	}
	if err := json.Unmarshal(text, &heads); err != nil {
		return nil, fmt.Errorf("the results of the faults: %w", err)
	}
	for _, h := range heads {
		if h.Version != FaultVersion {
			return nil, fmt.Errorf("the result of fault %s has version %d; this program reads version %d",
				h.Name, h.Version, FaultVersion)
		}
	}
	var faults []Fault
	if err := json.Unmarshal(text, &faults); err != nil {
		return nil, fmt.Errorf("the results of the faults: %w", err)
	}
	return faults, nil
}

// FaultWith returns the result of the fault with this UID and name; nil = it was not kept.
func FaultWith(faults []Fault, uid, name string) *Fault {
	for i := range faults {
		if faults[i].UID == uid && faults[i].Name == name {
			return &faults[i]
		}
	}
	return nil
}

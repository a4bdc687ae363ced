// Package document writes results of loads and of faults as they are kept beside the record of
// their run, or in it, within the room that there is, and reads them.
package document

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/redquake/redquake/internal/record/merged"
	"github.com/redquake/redquake/internal/result"
)

// ErrNoLoad means that a text is something else than the result of a load.
var ErrNoLoad = errors.New("is not the result of a load")

// EncodeLoad returns the JSON that DecodeLoad reads.
func EncodeLoad(l *result.Load) ([]byte, error) {
	text, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("encode the result of the load: %w", err)
	}
	return text, nil
}

// maxListed is the number of servers and of shards that a shortened result keeps: as many as a
// status lists.
const maxListed = 64

// EncodeShortLoad is EncodeLoad within so many bytes: a result that is longer has only the first
// servers and shards, and a note that says so.
func EncodeShortLoad(l *result.Load, limit int) ([]byte, error) {
	text, err := EncodeLoad(l)
	if err != nil || len(text) <= limit {
		return text, err
	}
	short := *l
	short.Servers, short.Target.Servers, short.Shards = firstOf(l.Servers), firstOf(l.Target.Servers),
		firstOf(l.Shards)
	short.Notes = append(slices.Clone(l.Notes),
		fmt.Sprintf("the result lists the first %d of %d servers, and of %d shards", maxListed,
			len(l.Servers), len(l.Shards)))
	if text, err = EncodeLoad(&short); err == nil && len(text) > limit {
		err = fmt.Errorf("the result of the load takes %d bytes with %d servers; allowed are %d",
			len(text), maxListed, limit)
	}
	return text, err
}

func firstOf[T any](list []T) []T {
	return list[:min(len(list), maxListed)]
}

// DecodeLoad reads the result of a load. The error is ErrNoLoad if the text is something else, and
// another one if it is of another version.
func DecodeLoad(text []byte) (*result.Load, error) {
	var l result.Load
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) || json.Unmarshal(text, &l) != nil ||
		l.Latency == "" {
		return nil, ErrNoLoad
	}
	if l.Version != result.LoadVersion {
		return nil, fmt.Errorf("has version %d; this program reads version %d", l.Version,
			result.LoadVersion)
	}
	return &l, nil
}

// Keep puts the result of a load into the record of its run, so that whoever reads the record alone
// has the same figures, verdict and doubts.
func Keep(l *result.Load, series *merged.Series) error {
	text, err := EncodeLoad(l)
	if err != nil {
		return err
	}
	series.Result = text
	return nil
}

// Kept returns the result that Keep put into the record; nil if there is none.
func Kept(series *merged.Series) (*result.Load, error) {
	if len(series.Result) == 0 {
		return nil, nil
	}
	l, err := DecodeLoad(series.Result)
	if err != nil {
		return nil, fmt.Errorf("the result in the record %w", err)
	}
	return l, nil
}

// ErrNoRoom means that the results of the faults do not fit into their place.
var ErrNoRoom = errors.New("no room for the result of the fault")

// maxFaultsText bounds the results of faults that are read, uncompressed: those that KeepFault
// compresses into its limit have a tenth.
const maxFaultsText = 8 << 20

// KeepFault puts the result of a fault into those that are kept of a load, in place of an earlier
// one of the same fault and of those of an earlier load. kept is what KeepFault returned before,
// nil at first; the error is ErrNoRoom if the results would take more than limit bytes.
func KeepFault(kept []byte, f *result.Fault, limit int) ([]byte, error) {
	faults, err := KeptFaults(kept)
	if err != nil {
		return nil, err
	}
	faults = slices.DeleteFunc(faults, func(o result.Fault) bool {
		return !o.Start.Equal(f.Start) ||
			o.UID == f.UID && o.Name == f.Name
	})
	faults = append(faults, *f)
	slices.SortStableFunc(faults, func(a, b result.Fault) int { return int(a.At - b.At) })
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

// ShortFault is the result of a fault without what its status has, too: operations, phases and all
// targets but the first ones.
func ShortFault(f *result.Fault) *result.Fault {
	short := *f
	short.Operations, short.Phases, short.Targets = nil, nil, firstOf(f.Targets)
	return &short
}

// KeptFaults reads what KeepFault returned: the results of the faults on a load, in the order of
// their injection. It fails if one is of another version.
func KeptFaults(kept []byte) ([]result.Fault, error) {
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
		if h.Version != result.FaultVersion {
			return nil, fmt.Errorf("the result of fault %s has version %d; this program reads version %d",
				h.Name, h.Version, result.FaultVersion)
		}
	}
	var faults []result.Fault
	if err := json.Unmarshal(text, &faults); err != nil {
		return nil, fmt.Errorf("the results of the faults: %w", err)
	}
	return faults, nil
}

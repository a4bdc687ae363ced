package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/redquake/redquake/internal/record/merged"
)

// Run is what is kept of a run beside its record: the results of its load, nil = it was not kept,
// and of its faults.
type Run struct {
	Load   *Load
	Faults []Fault
}

// ErrNoLoad means that a text is something else than the result of a load.
var ErrNoLoad = errors.New("is not the result of a load")

// EncodeLoad returns the JSON that DecodeLoad reads.
func EncodeLoad(l *Load) ([]byte, error) {
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
func EncodeShortLoad(l *Load, limit int) ([]byte, error) {
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
func DecodeLoad(text []byte) (*Load, error) {
	var l Load
	if !bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) || json.Unmarshal(text, &l) != nil ||
		l.Latency == "" {
		return nil, ErrNoLoad
	}
	if l.Version != LoadVersion {
		return nil, fmt.Errorf("has version %d; this program reads version %d", l.Version, LoadVersion)
	}
	return &l, nil
}

// Keep puts the result into the record of the run, so that whoever reads the record alone has the
// same figures, verdict and doubts.
func (r *Load) Keep(series *merged.Series) error {
	text, err := EncodeLoad(r)
	if err != nil {
		return err
	}
	series.Result = text
	return nil
}

// Kept returns the result that Keep put into the record; nil if there is none.
func Kept(series *merged.Series) (*Load, error) {
	if len(series.Result) == 0 {
		return nil, nil
	}
	l, err := DecodeLoad(series.Result)
	if err != nil {
		return nil, fmt.Errorf("the result in the record %w", err)
	}
	return l, nil
}

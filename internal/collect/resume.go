package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
)

// Resume continues a run whose start instant was set before the operator restarted: it loads the
// checkpoint, if there is one, and continues to pull from its end. Pods that have not accepted the
// start instant yet can receive it by Start with the same instant.
// It fails if the store fails (retry), or if the checkpoint cannot be used (ErrCheckpoint); nothing
// is pulled then.
func (s *Session) Resume(ctx context.Context, start time.Time) error {
	s.compareClocks()
	err := s.resume(ctx, start)
	s.settle()
	return err
}

func (s *Session) resume(ctx context.Context, start time.Time) error {
	s.saving.Lock()
	defer s.saving.Unlock()
	s.mu.Lock()
	begun := s.begun
	s.mu.Unlock()
	if begun {
		return nil
	}
	data, err := s.cfg.Store.Load(ctx)
	if err != nil {
		return fmt.Errorf("collect: load the checkpoint: %w", err)
	}
	s.record.Lock()
	defer s.record.Unlock()
	if len(data) > 0 {
		if err := s.restore(data); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.continuePods()
	s.begin(start)
	return nil
}

// restore replaces the record by that of a checkpoint. The caller holds record.
func (s *Session) restore(data []byte) error {
	series, err := merged.Decode(data)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCheckpoint, err)
	}
	if series.Run != s.cfg.Run || series.PodStep != s.cfg.Step || series.Pods != s.cfg.Pods ||
		!slices.Equal(series.Ops, s.cfg.Ops) ||
		!slices.Equal(series.Tallies, s.cfg.Tallies) {
		return fmt.Errorf("%w: it belongs to run %q with %d pods and interval %v", ErrCheckpoint,
			series.Run, series.Pods, series.PodStep)
	}
	s.series, s.compact = series, nil
	return nil
}

// continuePods sets the positions of the pods to the end of the record. The caller holds record and
// mu.
func (s *Session) continuePods() {
	for i, p := range s.pods {
		p.pulled = uint64(s.series.Next(i))
		p.acked = p.pulled
		p.closed = s.seriesEnded(i)
		if s.series.IsLost(i) && !p.gone {
			p.gone = true
			p.cancel()
		}
		if p.gone && !p.closed {
			s.merged(func(series *merged.Series) { series.Lose(i) })
			s.grown = true
		}
	}
}

// seriesEnded reports whether a pod's record has ended in the series. The caller holds record.
func (s *Session) seriesEnded(pod int) bool {
	beyond := record.Interval{Index: s.series.Next(pod) + 1, Ops: make([]record.Op, len(s.cfg.Ops))}
	return errors.Is(s.series.Add(pod, &beyond), merged.ErrEnded)
}

// ErrCheckpoint is returned for a stored checkpoint that cannot be read, or that belongs to another
// run.
var ErrCheckpoint = errors.New("collect: the checkpoint cannot be used")

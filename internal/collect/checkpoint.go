package collect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redquake/redquake/internal/record"
)

// The steps of counts and of histograms at which a series is no longer coarsened for the sake of memory.
const (
	coarsestStep    = time.Minute
	coarsestLatency = 10 * time.Minute
)

// ErrCheckpoint says that a stored checkpoint cannot be read, or is of another run.
var ErrCheckpoint = errors.New("collect: the checkpoint does not fit")

// keepSaving stores a checkpoint every CheckpointEvery, and when the record is complete. A store that fails is asked again, ever more
// rarely; the pods keep their record meanwhile.
func (s *Session) keepSaving() {
	wait := s.cfg.CheckpointEvery
	for {
		timer := time.NewTimer(wait)
		select {
		case <-s.ctx.Done():
			timer.Stop()
			return
		case <-s.saveNow:
			timer.Stop()
		case <-timer.C:
		}
		if err := s.save(s.ctx); err != nil {
			if s.ctx.Err() != nil {
				return
			}
			s.cfg.Logger.Error("checkpoint was not stored", "error", err)
			wait = min(2*wait, 6*s.cfg.CheckpointEvery)
			continue
		}
		wait = s.cfg.CheckpointEvery
	}
}

// save stores a checkpoint if the record has grown since the last, and only then lets the pods forget what it holds.
func (s *Session) save(ctx context.Context) error {
	s.saving.Lock()
	defer s.saving.Unlock()

	s.record.Lock()
	if !s.grown {
		s.record.Unlock()
		return nil
	}
	s.grown = false
	for s.series.Memory() > s.cfg.MemoryLimit && s.series.Step < coarsestStep && s.series.LatencyStep < coarsestLatency {
		s.series.Coarsen(fmt.Sprintf("it takes less than %d MiB of the operator's memory", s.cfg.MemoryLimit>>20))
	}
	s.record.Unlock()

	s.record.RLock() // readers go on; the pullers wait
	data, err := s.encode()
	held := make([]uint64, len(s.pods))
	for i := range held {
		held[i] = uint64(s.series.Next(i))
	}
	s.record.RUnlock()

	if err == nil {
		err = s.cfg.Store.Save(ctx, data)
	}
	if err != nil {
		s.record.Lock()
		s.grown = true
		s.record.Unlock()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if (err == nil) != (s.storeErr == nil) {
		wake(s.changed)
	}
	s.storeErr = err
	if err != nil {
		return err
	}
	s.saved = s.cfg.Now()
	for i, p := range s.pods {
		p.acked = max(p.acked, held[i])
	}
	return nil
}

// encode makes a checkpoint of the record. Once that is too large it is made of a compact record beside it, which then grows with it. The
// caller holds saving and, to read, record: whoever else touches the compact record holds record to write.
func (s *Session) encode() ([]byte, error) {
	from := s.series
	if s.compact != nil {
		from = s.compact
	}
	data, compact, err := from.EncodeCompact(s.cfg.CheckpointLimit)
	if err == nil && compact != nil {
		s.compact = compact
	}
	return data, err
}

// addInterval merges an interval of a pod. The caller holds record.
func (s *Session) addInterval(pod int, interval *record.Interval) error {
	if err := s.series.Add(pod, interval); err != nil {
		return err
	}
	if s.compact == nil {
		return nil
	}
	if err := s.compact.Add(pod, interval); err != nil {
		// It was told all that the record was told, so this cannot be; the next checkpoint makes another.
		s.cfg.Logger.Error("the compact record is given up", "pod", pod, "error", err)
		s.compact = nil
	}
	return nil
}

// Resume takes up a run whose start instant was decided before the operator restarted: it loads the checkpoint, if there is one, and
// goes on pulling from where it ends. A pod that had not taken the start yet still can, by Start with the same instant.
// It fails if the store does (try again), or if the checkpoint does not fit (ErrCheckpoint), and then nothing is pulled.
func (s *Session) Resume(ctx context.Context, start time.Time) error {
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
		series, err := record.DecodeSeries(data)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCheckpoint, err)
		}
		if series.Run != s.cfg.Run || series.PodStep != s.cfg.Step || series.Pods != s.cfg.Pods || !slices.Equal(series.Ops, s.cfg.Ops) ||
			!slices.Equal(series.Tallies, s.cfg.Tallies) {
			return fmt.Errorf("%w: it is of run %q with %d pods every %v", ErrCheckpoint, series.Run, series.Pods, series.PodStep)
		}
		s.series, s.compact = series, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range s.pods {
		p.pulled = uint64(s.series.Next(i))
		p.acked = p.pulled
		p.closed = s.seriesEnded(i)
		if s.series.IsLost(i) && !p.gone {
			p.gone = true
			p.cancel()
		}
		if p.gone && !p.closed {
			s.merged(func(series *record.Series) { series.Lose(i) })
			s.grown = true
		}
	}
	s.begin(start)
	return nil
}

// merged does the same to the record and to the compact one, if there is one. The caller holds record.
func (s *Session) merged(do func(*record.Series)) {
	do(s.series)
	if s.compact != nil {
		do(s.compact)
	}
}

// seriesEnded says whether the series knows that a pod's record has ended. The caller holds record.
func (s *Session) seriesEnded(pod int) bool {
	beyond := record.Interval{Index: s.series.Next(pod) + 1, Ops: make([]record.Op, len(s.cfg.Ops))}
	return errors.Is(s.series.Add(pod, &beyond), record.ErrEnded)
}

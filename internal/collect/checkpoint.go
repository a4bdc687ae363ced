package collect

import (
	"context"
	"fmt"
	"time"
)

// The steps of counts and histograms beyond which a series is not coarsened to save memory.
const (
	coarsestStep    = time.Minute
	coarsestLatency = 10 * time.Minute
)

// keepSaving stores a checkpoint every CheckpointEvery, and when the record is complete. Failures are retried with a
// backoff; the pods keep their record meanwhile.
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
			s.cfg.Logger.Error("failed to store a checkpoint", "error", err)
			wait = min(2*wait, 6*s.cfg.CheckpointEvery)
			continue
		}
		wait = s.cfg.CheckpointEvery
	}
}

// save stores a checkpoint if the record has changed since the last one, and then acknowledges its intervals to the pods.
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

	s.record.RLock() // blocks merging, but not reading
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

// encode encodes a checkpoint of the record. Once that is too large, it uses a compact copy, to which intervals are added as well. The
// caller holds saving and record for reading; all other code that uses the compact record holds record for writing.
func (s *Session) encode() ([]byte, error) {
	from := s.series
	if s.compact != nil {
		from = s.compact
	}
	data, compact, err := from.EncodeCompact(s.cfg.CheckpointLimit)
	if err != nil {
		return nil, fmt.Errorf("encode the checkpoint: %w", err)
	}
	if compact != nil {
		s.compact = compact
	}
	return data, nil
}

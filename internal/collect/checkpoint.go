package collect

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/record/merged"
)

// The steps of counts and histograms beyond which a series is not coarsened to save memory.
const (
	coarsestStep    = time.Minute
	coarsestLatency = 10 * time.Minute
)

// keepSaving stores a checkpoint every CheckpointEvery, and when the record is complete. Failures
// are retried with a backoff; the pods keep their record meanwhile.
func (s *Session) keepSaving() {
	wait := s.cfg.Checkpoints.Every
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
			wait = min(2*wait, 6*s.cfg.Checkpoints.Every)
			continue
		}
		wait = s.cfg.Checkpoints.Every
	}
}

// save stores a checkpoint if the record has changed since the last one, and then acknowledges its
// intervals to the pods.
func (s *Session) save(ctx context.Context) error {
	s.saving.Lock()
	defer s.saving.Unlock()

	s.record.Lock()
	if !s.record.grown {
		s.record.Unlock()
		return nil
	}
	s.record.grown = false
	s.limitMemory()
	s.record.Unlock()

	s.record.RLock() // blocks merging, but not reading
	data, coarse, err := s.encode()
	held := make([]uint64, len(s.pods))
	for i := range held {
		held[i] = uint64(s.record.series.Next(i))
	}
	s.record.RUnlock()

	if coarse != nil {
		s.record.Lock()
		s.record.series.CoarsenAs(coarse)
		s.record.Unlock()
	}
	if err == nil {
		err = s.cfg.Store.Save(ctx, data)
	}
	if err != nil {
		s.record.Lock()
		s.record.grown = true
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
		p.progress.acked = max(p.progress.acked, held[i])
	}
	return nil
}

// limitMemory coarsens the record to what it may take of the operator's memory. From then on the
// record itself is as coarse as the checkpoints: there is no copy for them. The caller holds saving
// and record.
func (s *Session) limitMemory() {
	used := s.record.memory()
	limit := s.cfg.Memory.claim(s, used)
	if used > limit && s.record.compact != nil {
		s.record.series.CoarsenAs(s.record.compact)
		s.record.compact = nil
		used = s.record.memory()
	}
	series := s.record.series
	for used > limit && series.Step < coarsestStep && series.LatencyStep < coarsestLatency {
		if !series.Coarsen(fmt.Sprintf("it takes less than %d MiB of the operator's memory",
			limit>>20)) {
			break
		}
		used = s.record.memory()
	}
	s.cfg.Memory.claim(s, used)
}

// encode encodes a checkpoint of the record. As long as the record is not coarsened itself, a
// checkpoint that would be too large is encoded from a compact copy, to which intervals are added
// as well. The caller holds saving and record for reading; all other code that uses the compact
// record holds record for writing. It returns what the record is to be coarsened to; nil = nothing.
func (s *Session) encode() (data []byte, coarse *merged.Series, err error) {
	from := s.record.series
	if s.record.compact != nil {
		from = s.record.compact
	}
	data, compact, err := from.EncodeCompact(s.cfg.Checkpoints.Limit)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("encode the checkpoint: %w", err)
	case compact == nil:
		return data, nil, nil
	case s.record.series.Coarse():
		return data, compact, nil
	}
	s.record.compact = compact
	return data, nil, nil
}

// Memory is what the records of all sessions of a process may take together. A session coarsens its
// record to stay within its part. The sessions also share what large responses of load pods take
// until they are part of a record.
type Memory struct {
	Limit int // of the records, in bytes; 0 = DefaultMemoryLimit

	mu   sync.Mutex
	used map[*Session]int
	// holds a value for each large response that is being read; made when it is used
	large chan struct{}
}

// largeAtOnce is how many large responses are read at the same time: about 4 MiB each.
const largeAtOnce = 8

// readLarge waits until a large response may be read, at most until ctx ends. free is to be called
// when it is not needed any more.
func (m *Memory) readLarge(ctx context.Context) (free func(), err error) {
	m.mu.Lock()
	if m.large == nil {
		m.large = make(chan struct{}, largeAtOnce)
	}
	large := m.large
	m.mu.Unlock()
	select {
	case large <- struct{}{}:
		return func() { <-large }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait until %d other large responses were read: %w", largeAtOnce,
			ctx.Err())
	}
}

// claim records how much memory a session uses and returns how much it may use: what the others
// leave, at least an equal share.
func (m *Memory) claim(s *Session, used int) (limit int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.used == nil {
		m.used = map[*Session]int{}
	}
	m.used[s] = used
	all := m.limit()
	left := all
	for other, used := range m.used {
		if other != s {
			left -= used
		}
	}
	return max(left, all/len(m.used))
}

// Used returns the size of the records of all sessions, in bytes, as of the last checkpoint of
// each, and what they may take together.
func (m *Memory) Used() (used, limit int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, bytes := range m.used {
		used += bytes
	}
	return used, m.limit()
}

// limit is what the records of all sessions may take together, in bytes.
func (m *Memory) limit() int {
	return cmp.Or(m.Limit, DefaultMemoryLimit)
}

// leave removes a session.
func (m *Memory) leave(s *Session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.used, s)
}

// Keep keeps the part [from, to) of the record, counted from the start, at full resolution, also in
// checkpoints; see merged.Series.Keep.
func (s *Session) Keep(id string, from, to time.Duration) {
	s.record.Lock()
	defer s.record.Unlock()
	s.record.merged(func(series *merged.Series) { series.Keep(id, from, to) })
}

package collect

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/record/merged"
)

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
	s.merged(func(series *merged.Series) { series.Keep(id, from, to) })
}

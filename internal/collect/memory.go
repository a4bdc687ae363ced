package collect

import (
	"sync"
	"time"

	"github.com/redquake/redquake/internal/record"
)

// Memory is what the records of all sessions of a process may take together. A session coarsens its record to stay within its part.
type Memory struct {
	Limit int // bytes; 0 = DefaultMemoryLimit

	mu   sync.Mutex
	used map[*Session]int
}

// claim records how much memory a session uses and returns how much it may use: what the others leave, at least an equal share.
func (m *Memory) claim(s *Session, used int) (limit int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.used == nil {
		m.used = map[*Session]int{}
	}
	m.used[s] = used
	all := m.Limit
	if all == 0 {
		all = DefaultMemoryLimit
	}
	left := all
	for other, used := range m.used {
		if other != s {
			left -= used
		}
	}
	return max(left, all/len(m.used))
}

// leave removes a session.
func (m *Memory) leave(s *Session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.used, s)
}

// Keep keeps the part [from, to) of the record, counted from the start, at full resolution, also in checkpoints; see record.Series.Keep.
func (s *Session) Keep(id string, from, to time.Duration) {
	s.record.Lock()
	defer s.record.Unlock()
	s.merged(func(series *record.Series) { series.Keep(id, from, to) })
}

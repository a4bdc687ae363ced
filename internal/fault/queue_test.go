package fault

import (
	"context"
	"strings"

	"github.com/redquake/redquake/internal/redis"
)

// Queue sends the first command through do; the others stay queued until HangUp.
func (s *scripted) Queue(ctx context.Context, key, address string, login redis.Login, commands [][]string) error {
	if s.Queued(key) {
		return nil
	}
	words := make([]any, len(commands[0]))
	for i, w := range commands[0] {
		words[i] = w
	}
	if _, err := s.Do(ctx, address, login, words...); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queues == nil {
		s.queues = map[string]string{}
	}
	s.queues[key] = strings.Join(commands[0], " ")
	return nil
}

func (s *scripted) Queued(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queues[key] != ""
}

func (s *scripted) HangUp(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.queues, key)
}

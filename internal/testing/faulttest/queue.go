package faulttest

import (
	"context"
	"strings"

	"github.com/redquake/redquake/internal/redis"
)

// Queue sends the first command through do; the others stay queued until HangUp.
func (s *Scripted) Queue(ctx context.Context, key, address string, login redis.Login, commands [][]string) error {
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
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.queues == nil {
		s.queues = map[string]string{}
	}
	s.queues[key] = strings.Join(commands[0], " ")
	return nil
}

// Queued reports whether something is queued.
func (s *Scripted) Queued(key string) bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	return s.queues[key] != ""
}

// HangUp drops what is queued.
func (s *Scripted) HangUp(key string) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	delete(s.queues, key)
}

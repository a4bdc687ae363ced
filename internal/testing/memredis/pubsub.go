package memredis

import "slices"

// Publish sends a message to the subscribers of a channel at once, and returns their number.
func (s *Server) Publish(channel, message string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return 0
	}
	subscribers := s.process.subscribers[channel]
	for _, c := range subscribers {
		// never waits; a connection that has ended is no subscriber
		_, _ = c.conn.Write(bulks(c.push(nil), "message", channel, message))
	}
	return len(subscribers)
}

func subscribe(c *session, out []byte, words []string) []byte {
	for i, channel := range words[1:] {
		c.process.subscribers[channel] = append(c.process.subscribers[channel], c)
		out = number(bulks(c.push(out), "subscribe", channel), i+1)
	}
	return out
}

// unsubscribe forgets a connection that has ended. The caller holds the mutex.
func (c *session) unsubscribe() {
	for channel, all := range c.process.subscribers {
		c.process.subscribers[channel] = slices.DeleteFunc(all, func(other *session) bool { return other == c })
	}
}

// push appends the header of a push message with three items.
func (c *session) push(out []byte) []byte {
	if c.version == 3 {
		return head(out, '>', 3)
	}
	return head(out, '*', 3)
}

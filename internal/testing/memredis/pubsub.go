package memredis

import (
	"path"
	"slices"
	"strings"
)

// Publish sends a message to the subscribers of a channel at once, and returns their number.
func (s *Server) Publish(channel, message string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return 0
	}
	return s.process.publish(channel, message)
}

func (p *process) publish(channel, message string) int {
	n := 0
	// never waits; a connection that has ended is no subscriber
	for _, c := range p.subscribers[channel] {
		_, _ = c.conn.Write(bulks(c.push(nil, 3), "message", channel, message))
		n++
	}
	for pattern, all := range p.patterns {
		if matches, _ := path.Match(pattern, channel); !matches {
			continue
		}
		for _, c := range all {
			_, _ = c.conn.Write(bulks(c.push(nil, 4), "pmessage", pattern, channel, message))
			n++
		}
	}
	return n
}

func publish(c *session, out []byte, words []string) []byte {
	return number(out, c.process.publish(words[1], words[2]))
}

func subscribe(c *session, out []byte, words []string) []byte {
	of := c.process.subscribers
	if words[0] == "PSUBSCRIBE" {
		of = c.process.patterns
	}
	for _, channel := range words[1:] {
		of[channel] = append(of[channel], c)
		c.subscribed++
		out = number(bulks(c.push(out, 3), strings.ToLower(words[0]), channel), c.subscribed)
	}
	return out
}

// unsubscribe forgets a connection that has ended. The caller holds the mutex.
func (c *session) unsubscribe() {
	for _, of := range []map[string][]*session{c.process.subscribers, c.process.patterns} {
		for channel, all := range of {
			of[channel] = slices.DeleteFunc(all, func(other *session) bool { return other == c })
		}
	}
}

// push appends the header of a push message with so many items.
func (c *session) push(out []byte, items int) []byte {
	if c.version == 3 {
		return head(out, '>', items)
	}
	return head(out, '*', items)
}

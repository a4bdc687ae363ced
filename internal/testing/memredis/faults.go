package memredis

import (
	"fmt"
	"strings"
	"time"
)

// Span is a stretch of time; To is zero while it lasts.
type Span struct{ From, To time.Time }

// Answered are the stretches of time in which the server responded, so far: a process ran and was not frozen.
func (s *Server) Answered() []Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Span(nil), s.answered...)
}

// silent ends the last span. The caller holds the mutex.
func (s *Server) silent() {
	last := &s.answered[len(s.answered)-1]
	if last.To.IsZero() {
		last.To = time.Now()
	}
}

// Stop freezes the process, as SIGSTOP does: its connections stay open without replies, and dials succeed.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.process; p != nil && p.paused == nil {
		p.paused = make(chan struct{})
		s.silent()
	}
}

// Busy reports whether a command is running now, at its cost.
func (s *Server) Busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process != nil && s.process.running
}

// Paused is what CLIENT PAUSE keeps from being performed now: ALL, WRITE or "".
func (s *Server) Paused() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch p := s.process; {
	case p == nil || !time.Now().Before(p.pause.until):
		return ""
	case p.pause.writes:
		return "WRITE"
	}
	return "ALL"
}

// Script is the reply to a command at a server: a string, an int, a list ([]any) of those, an error (whose text is the
// error reply), Raw, NoReply or HangUp. nil = the server's own. It is called outside of all locks, also concurrently
// for several servers.
type Script func(address string, words []string) any

// Raw is a reply as it is sent, without the last end of line.
type Raw string

// NoReply is the reply to a command that never gets one, such as BLPOP of a list to which nobody adds.
const NoReply = "no reply"

// HangUp as a reply ends the connection instead.
const HangUp = "hang up"

// Answer fixes the reply to a command, such as "-OOM command not allowed when used memory > 'maxmemory'."; "" restores
// the server's own.
// A reply to "SENTINEL MYID" takes precedence over one to "SENTINEL".
func (s *Server) Answer(command, reply string) {
	script := func(string, []string) any {
		if reply == NoReply {
			return NoReply
		}
		return Raw(reply)
	}
	if reply == "" {
		script = nil
	}
	s.Script(command, script)
}

// Script lets a function reply to a command, which are its first words, or to all of them by ""; nil restores the
// server's own replies. The function for more words takes precedence; where it returns nil, the server replies.
func (s *Server) Script(command string, script Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	setScript(s.scripts, command, script)
}

// Script lets a function reply to a command at all servers of the group that do not script it themselves.
func (g *Group) Script(command string, script Script) {
	g.mu.Lock()
	defer g.mu.Unlock()
	setScript(g.scripts, command, script)
}

// mostScripted is how many words of a command are compared with those of scripts.
const mostScripted = 8

func setScript(scripts map[string]Script, command string, script Script) {
	if scripts[strings.ToUpper(command)] = script; script == nil {
		delete(scripts, strings.ToUpper(command))
	}
}

// script is what replies to a command instead of the server; nil = nothing.
func (c *session) script(words []string) Script {
	s := c.server
	s.mu.Lock()
	var script Script
	if len(s.scripts)+len(s.group.scripts) > 0 {
		for n := range min(len(words), mostScripted) + 1 {
			name := strings.ToUpper(strings.Join(words[:n], " "))
			if of := s.group.scripts[name]; of != nil {
				script = of
			}
			if of := s.scripts[name]; of != nil {
				script = of
			}
		}
	}
	s.mu.Unlock()
	return script
}

// encode appends a scripted reply.
func (c *session) encode(out []byte, reply any) []byte {
	switch v := reply.(type) {
	case nil:
		return c.null(out)
	case Raw:
		return append(append(out, v...), "\r\n"...)
	case error:
		return fail(out, "%s", v.Error())
	case int:
		return number(out, v)
	case int64:
		return number(out, int(v))
	case []any:
		out = head(out, '*', len(v))
		for _, item := range v {
			out = c.encode(out, item)
		}
		return out
	case string:
		switch v {
		case NoReply:
			return out
		case HangUp:
			c.hangsUp = true
			return out
		case "OK", "PONG":
			return append(append(append(out, '+'), v...), "\r\n"...)
		}
		return bulk(out, v)
	}
	panic(fmt.Sprintf("memredis cannot reply %T", reply))
}

// wake lets the connections that wait for the end of a pause look again. The caller holds the mutex.
func (p *process) wake() {
	close(p.pause.changed)
	p.pause.changed = make(chan struct{})
}

// paused reports whether CLIENT PAUSE postpones a command now.
func (c *session) paused(words []string) bool {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	p := c.process
	if len(words) == 0 || !time.Now().Before(p.pause.until) {
		return false
	}
	// those that are replicated wait as writes do
	return !p.pause.writes || commands[words[0]].write || words[0] == "EVAL" || words[0] == "PUBLISH"
}

// awaitPause waits until a command is not paused any more, while others have their turn; false if the connection or the
// process ends: what is postponed is dropped then.
func (c *session) awaitPause(words []string) bool {
	p := c.process
	<-p.turn
	for c.paused(words) {
		c.server.mu.Lock()
		timer := time.NewTimer(time.Until(p.pause.until))
		changed := p.pause.changed
		c.server.mu.Unlock()
		select {
		case <-timer.C:
		case <-changed:
		case <-p.done:
			timer.Stop()
			return false
		}
		timer.Stop()
	}
	end, is := c.conn.(interface{ Ended() bool })
	if is && end.Ended() {
		return false
	}
	return c.takeTurn()
}

// running waits while the process is frozen; false if it has ended.
func (c *session) running() bool {
	for {
		c.server.mu.Lock()
		paused := c.process.paused
		c.server.mu.Unlock()
		if paused == nil {
			break
		}
		select {
		case <-paused:
		case <-c.process.done:
			return false
		}
	}
	select {
	case <-c.process.done:
		return false
	default:
		return true
	}
}

func debugSleep(words []string) time.Duration {
	if len(words) != 3 || !strings.EqualFold(words[1], "SLEEP") {
		return 0
	}
	var seconds float64
	_, _ = fmt.Sscan(words[2], &seconds)
	return time.Duration(seconds * float64(time.Second))
}

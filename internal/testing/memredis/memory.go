package memredis

import (
	"bufio"
	"io"
	"strconv"
	"strings"
)

// argument is from which length on an argument is counted as memory that is held: no test sends such a command.
const argument = 256 << 10

// incomplete is how redis.Client's Flood begins a request.
const incomplete = "*2\r\n$4\r\nECHO\r\n$"

// hold keeps the argument of a request that is never complete, as long as the connection is there, and reports whether
// it is one. The kernel ends a process that holds more than Options.Memory.
func (c *session) hold(in *bufio.Reader) bool {
	if _, err := in.Peek(1); err != nil {
		return false
	}
	head, _ := in.Peek(min(in.Buffered(), 64))
	rest, is := strings.CutPrefix(string(head), incomplete)
	length, _, ends := strings.Cut(rest, "\r\n")
	size, err := strconv.Atoi(length)
	if !is || !ends || err != nil || size < argument {
		return false
	}
	_, _ = in.Discard(len(incomplete) + len(length) + 2)
	if script := c.script([]string{"ECHO"}); script != nil {
		if refusal := script(c.server.address, []string{"ECHO"}); refusal != nil {
			_, _ = c.conn.Write(c.encode(nil, refusal))
			return true
		}
	}
	held := 0
	defer func() {
		c.server.mu.Lock()
		defer c.server.mu.Unlock()
		c.process.held -= held
	}()
	part := make([]byte, 64<<10)
	for held < size {
		n, err := io.LimitReader(in, int64(size-held)).Read(part)
		held += n
		if !c.fits(n) || err != nil {
			break
		}
	}
	return true
}

// fits reports whether a process may hold so many bytes more; it ends if it may not.
func (c *session) fits(more int) bool {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	c.process.held += more
	if s.options.Memory == 0 || c.process.held <= s.options.Memory || s.process != c.process {
		return s.process == c.process
	}
	if s.group.watch != nil {
		s.group.watch(Command{Address: s.address, Words: []string{OutOfMemory}})
	}
	s.end(c.process)
	return false
}

// OutOfMemory is the command that Group.Watch sees where the kernel has ended a server.
const OutOfMemory = "(out of memory)"

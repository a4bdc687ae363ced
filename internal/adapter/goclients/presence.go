package goclients

import "sync"

// presence knows whether a client has a connection. A request was certainly not sent if there was
// none from before its start to its end: the libraries do not say of an error, which is the last of
// several attempts, whether an earlier one was sent.
type presence struct {
	mu    sync.Mutex
	open  int
	dials uint64 // that succeeded
}

// opened counts a connection.
func (p *presence) opened() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open++
	p.dials++
}

// overlooked says that the client has connections that are not counted: then nothing is certain.
func (p *presence) overlooked(yes bool) {
	if yes {
		p.opened()
	}
}

// closed counts the end of a connection.
func (p *presence) closed() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
}

// glimpse is what a presence was before a request.
type glimpse struct {
	open  int
	dials uint64
}

func (p *presence) look() glimpse {
	p.mu.Lock()
	defer p.mu.Unlock()
	return glimpse{p.open, p.dials}
}

// absent reports whether there has been no connection since before.
func (p *presence) absent(before glimpse) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return before.open == 0 && p.dials == before.dials
}

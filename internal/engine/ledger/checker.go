package ledger

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/resp"
)

const (
	// DefaultCheckEvery is the time between two checks.
	DefaultCheckEvery = time.Second
	// checkWithin is the time limit of an exchange with a server.
	checkWithin = 2 * time.Second
	// recentBytes are read again before what was numbered since the check before: a failover loses the
	// newest writes, which that check has found.
	recentBytes = 16 << 10
	// turnBytes of what is older are read in turn: a server that comes back empty, or with an old
	// snapshot, has lost more than the newest writes.
	turnBytes = 16 << 10
)

// Checker finds lost writes during a load. It reads the keys from the primaries over connections
// of its own, a bounded part of each at a time: GETRANGE costs a server less than BITCOUNT. What
// was acknowledged before a check and is absent is lost at that moment, which bits that are present
// for another reason can only hide.
type Checker struct {
	Audit *Audit
	Books []*Book
	// Lock keeps Books[i] from being used until unlock is called.
	Lock func(i int) (unlock func())
	// Layout returns the topology as the load knows it. It must not query it: that would help the load
	// to find a new primary.
	Layout func() (Layout, error)
	// Redial connects anew for each check, as the address is that of no certain server.
	Redial bool
	// Delay is the time before the first check, so that not all pods check at the same instant.
	Delay time.Duration
	Every time.Duration // default DefaultCheckEvery
	Now   func() int64  // the instant, from the run's start

	pages []*checkedPage
	open  map[string]*redis.Conn // by address

	mu    sync.Mutex // guards what follows
	found []foundLoss
	last  *record.LedgerCheck // since the last Take
}

// checkedPage is the state of a page, beside that of its book.
type checkedPage struct {
	*page
	book  int
	bytes int    // of the key for a byte of the bitmap
	seen  int    // length of the bitmap at the last check that could read it
	turn  int    // where the next part that is read in turn begins
	known []byte // the lost writes that were found, as a bitmap
}

type foundLoss struct {
	at    int64
	shard int
	count uint64
}

// part is a part of a page, with the writes that were acknowledged when the check began.
type part struct {
	page    *checkedPage
	from    int // in bytes
	acked   []byte
	present []byte // what the primary had
}

// Run checks until ctx ends.
func (c *Checker) Run(ctx context.Context) {
	c.begin()
	defer c.close()
	if slices.ContainsFunc(c.Books, func(b *Book) bool { return b.unique }) {
		c.conclude(record.LedgerCheck{
			Unknowable: true,
			Failure:    "maxmemory-policy is not noeviction, so that each ledger write is a key: they are only read after the load",
		})
		return
	}
	every := cmp.Or(c.Every, DefaultCheckEvery)
	for more := c.Audit.Wait(ctx, c.Delay); more; more = c.Audit.Wait(ctx, every) {
		c.check(ctx)
	}
}

// Take returns what was found before an instant and not taken yet: lost writes by shard, and the
// last check, if there was one.
func (c *Checker) Take(before int64) (lost []uint64, checks []record.LedgerCheck) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found = slices.DeleteFunc(c.found, func(f foundLoss) bool {
		if f.at >= before {
			return false
		}
		for len(lost) <= f.shard {
			lost = append(lost, 0)
		}
		lost[f.shard] += f.count
		return true
	})
	if c.last != nil {
		checks = []record.LedgerCheck{*c.last}
	}
	c.last = nil
	return lost, checks
}

func (c *Checker) begin() {
	c.open = map[string]*redis.Conn{}
	for i, b := range c.Books {
		for shard := range b.pages {
			c.pages = append(c.pages, &checkedPage{page: &b.pages[shard], book: i, bytes: b.bytesOfEight()})
		}
	}
}

func (c *Checker) close() {
	for _, open := range c.open {
		open.Close()
	}
}

// check reads a part of each page once.
func (c *Checker) check(ctx context.Context) {
	result := record.LedgerCheck{At: c.Now()}
	// before the topology is read: what it names as primary is never older than the one that
	// acknowledged
	parts := c.snapshot()
	layout, err := c.Layout()
	if err != nil {
		c.conclude(record.LedgerCheck{Failure: err.Error()})
		return
	}
	failures := c.readAll(ctx, &layout, parts)
	if ctx.Err() != nil {
		return
	}
	now, err := c.Layout()
	switch {
	case err != nil || !samePrimaries(&layout, &now, parts):
		failures[""] = "the topology changed during the check"
	case len(c.Audit.evictions.result()) > 0:
		result.Unknowable = true
		failures[""] = "the ledger may have been evicted: maxmemory-policy is not noeviction any more"
	default:
		c.compare(&layout, parts)
	}
	if len(failures) > 0 {
		result.At = 0
		result.Failure = failures[slices.Min(slices.Collect(maps.Keys(failures)))]
	}
	c.conclude(result)
}

// snapshot copies the parts of the books to be read, with the writes that are acknowledged.
func (c *Checker) snapshot() []*part {
	var parts []*part
	for i := 0; i < len(c.pages); {
		unlock := c.Lock(c.pages[i].book)
		for book := c.pages[i].book; i < len(c.pages) && c.pages[i].book == book; i++ {
			parts = c.pages[i].appendParts(parts)
		}
		unlock()
	}
	return parts
}

// appendParts appends the newest part of a page, and one of the rest in turn.
func (p *checkedPage) appendParts(parts []*part) []*part {
	recent, turn := recentBytes/p.bytes, turnBytes/p.bytes
	end := len(p.acked)
	if end == 0 { // whether it can be read shows before the first write
		return append(parts, &part{page: p, acked: []byte{0}})
	}
	from := max(0, min(p.seen, end)-recent, end-chunkBytes/p.bytes)
	parts = append(parts, &part{
		page:  p,
		from:  from,
		acked: bytes.Clone(p.acked[from:]),
	})
	if from == 0 {
		return parts
	}
	if p.turn >= from {
		p.turn = 0
	}
	first := p.turn
	p.turn = min(first+turn, from)
	return append(parts, &part{
		page:  p,
		from:  first,
		acked: bytes.Clone(p.acked[first:p.turn]),
	})
}

// readAll reads the parts from their primaries. It returns why some could not be read, by the
// primary's address.
func (c *Checker) readAll(
	ctx context.Context, layout *Layout, parts []*part,
) (failures map[string]string) {
	failures = map[string]string{}
	byPrimary := map[string][]*part{}
	for _, one := range parts {
		primary, err := layout.primary(layout.shardOf(one.page.slot))
		if err != nil {
			failures[""] = err.Error()
			continue
		}
		byPrimary[primary.Address] = append(byPrimary[primary.Address], one)
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for address, own := range byPrimary {
		conn := c.open[address]
		if conn == nil {
			conn = c.Audit.conn(address, checkWithin, false)
			c.open[address] = conn
		}
		all.Go(func() {
			err := c.read(ctx, Node{Address: address}, conn, own)
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failures[address] = err.Error()
			}
			if c.Redial {
				conn.Close()
			}
		})
	}
	all.Wait()
	return failures
}

// read reads parts from a server, which was a primary before and after that without a change of its
// role in between.
func (c *Checker) read(ctx context.Context, n Node, conn *redis.Conn, parts []*part) error {
	request := resp.AppendCommand(nil, "INFO", "replication")
	for _, one := range parts {
		from, to := one.span()
		request = resp.AppendCommand(request, "GETRANGE", one.page.key, strconv.Itoa(from), strconv.Itoa(to-1))
	}
	values, err := conn.Exchange(ctx, resp.AppendCommand(request, "INFO"), len(parts)+2)
	if err != nil {
		return fmt.Errorf("%s: %w", n.Address, err)
	}
	for _, v := range values {
		if v.IsError() {
			return replyError(n, v)
		}
	}
	before := redis.ParseInfo(values[0].Text)
	after := redis.ParseInfo(values[len(parts)+1].Text)
	role := after["role"]
	if role != "master" || before["role"] != role ||
		before["master_replid"] != after["master_replid"] {
		return fmt.Errorf("%s is no primary, its role is %s", n.Address, role)
	}
	c.Audit.evictions.add(after, false, false)
	for i, one := range parts {
		text, from, to := values[i+1].Text, 0, 0
		if from, to = one.span(); len(text) > to-from {
			return fmt.Errorf("%s replied to GETRANGE with %d bytes instead of %d", n.Address, len(text),
				to-from)
		}
		one.note(text)
	}
	return nil
}

// span is the part of the key that holds a part of the page.
func (p *part) span() (from, to int) {
	return p.from * p.page.bytes, (p.from + len(p.acked)) * p.page.bytes
}

// note takes over what the primary had: beyond the end of its string all is zero.
func (p *part) note(text string) {
	p.present = make([]byte, len(p.acked))
	if p.page.bytes == 1 {
		copy(p.present, text)
		return
	}
	found := contents{bits: p.present}
	for i := range len(text) {
		found.put(uint64(i), int64(text[i]))
	}
}

// samePrimaries reports whether two layouts name the same primaries of all parts.
func samePrimaries(a, b *Layout, parts []*part) bool {
	for _, one := range parts {
		before, _ := a.primary(a.shardOf(one.page.slot))
		after, _ := b.primary(b.shardOf(one.page.slot))
		if before.Address != after.Address {
			return false
		}
	}
	return true
}

// compare finds the acknowledged writes that are absent.
func (c *Checker) compare(layout *Layout, parts []*part) {
	at := c.Now()
	for _, one := range parts {
		if one.present == nil {
			continue
		}
		lost := one.page.absent(one)
		if one.page.seen = max(one.page.seen, one.from+len(one.acked)); lost == 0 {
			continue
		}
		c.mu.Lock()
		c.found = append(c.found, foundLoss{
			at, min(layout.shardOf(one.page.slot), record.MaxShards-1),
			lost,
		})
		c.mu.Unlock()
	}
}

// absent counts the acknowledged writes of a part that are absent, and were not found to be so
// before.
func (p *checkedPage) absent(one *part) (lost uint64) {
	for i, acked := range one.acked {
		missing := acked &^ one.present[i]
		if missing == 0 {
			continue
		}
		if end := one.from + len(one.acked); len(p.known) < end {
			p.known = append(p.known, make([]byte, end-len(p.known))...)
		}
		known := &p.known[one.from+i]
		lost += uint64(bits.OnesCount8(missing &^ *known))
		*known |= missing
	}
	return lost
}

func (c *Checker) conclude(check record.LedgerCheck) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = &check
}

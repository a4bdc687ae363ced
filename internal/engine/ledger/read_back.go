package ledger

import (
	"context"
	"fmt"
	"math/bits"
	"strconv"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/resp"
)

const (
	// chunkBytes of a bitmap are read with one command, which blocks the server for microseconds only.
	chunkBytes = 256 << 10
	// keysAtOnce is the number of keys per command.
	keysAtOnce = 512
	// readTries is how often a page is read: a connection may break, or a slot may move.
	readTries = 3
)

// reading is one pass over all pages.
type reading struct {
	audit          *Audit
	nodes          *connections
	layout         Layout
	late           map[string]string // replicas that are not read
	result         *record.Ledger
	replicaMissing map[string]uint64 // by address
}

// page reads one page from its primary and each replica, and adds the difference to the result.
func (r *reading) page(ctx context.Context, b *Book, shard int) {
	p := &b.pages[shard]
	if p.next == 0 {
		return
	}
	for i := range p.acked {
		r.result.Acked += uint64(bits.OnesCount8(p.acked[i]))
		r.result.Failed += uint64(bits.OnesCount8(p.failed[i]))
	}
	primary, present, err := r.readPrimary(ctx, b, p)
	if err != nil {
		r.result.Unread = fmt.Sprintf("failed to read key %s back: %v", p.key, err)
		return
	}
	if b.counted {
		r.result.CountExecuted(present.repeated)
	}
	r.account(p, present.bits)
	for _, n := range r.layout.Nodes {
		if n.Shard != primary.Shard || n.Primary || r.late[n.Address] != "" {
			continue
		}
		there, err := r.read(ctx, b, p, n)
		if err != nil {
			r.late[n.Address] = err.Error()
			r.result.AddNote(fmt.Sprintf("Replica %s was not read: %v.", n.Address, err))
			continue
		}
		missing := r.replicaMissing[n.Address]
		for i, acked := range p.acked {
			missing += uint64(bits.OnesCount8(acked & present.bits[i] &^ there.bits[i]))
		}
		r.replicaMissing[n.Address] = missing
	}
}

// account compares the acknowledged writes with those that are present.
func (r *reading) account(p *page, present []byte) {
	var current *record.Loss // the period that no kept write has ended yet
	for i, acked := range p.acked {
		mask := byte(0xff)
		if rest := p.next - uint64(i)*8; rest < 8 {
			mask <<= 8 - rest // the last byte: numbers that were not assigned
		}
		failed := p.failed[i]
		r.result.UnknownPresent += uint64(bits.OnesCount8(present[i] & mask &^ acked &^ failed))
		r.result.FailedPresent += uint64(bits.OnesCount8(present[i] & failed))
		r.result.Unknown += uint64(bits.OnesCount8(mask &^ acked &^ failed))
		lost := acked &^ present[i]
		if lost != 0 || current != nil && acked != 0 {
			current = r.losses(p, uint64(i)*8, acked, lost, current)
		}
	}
	if current != nil {
		r.lost(*current)
	}
}

// losses adds the lost ones of eight acknowledged writes from number n on to the current period of
// lost writes, and ends it with a kept one. It returns the period that goes on then; nil = none.
func (r *reading) losses(p *page, n uint64, acked, lost byte, current *record.Loss) *record.Loss {
	for ; acked != 0; n, acked, lost = n+1, acked<<1, lost<<1 {
		if acked&0x80 == 0 {
			continue
		}
		b := p.blocks[p.blockOf(n)]
		first, last := int64(b.first)*instantUnit, int64(b.last)*instantUnit
		switch {
		case lost&0x80 != 0:
			r.result.FirstLost, r.result.LastLost = record.JoinWindows(r.result.Lost, r.result.FirstLost,
				r.result.LastLost, 1, first, last)
			r.result.Lost++
			if current == nil {
				current = &record.Loss{First: first}
			}
			current.First = min(current.First, first)
			current.Last = max(current.Last, last)
			current.After = max(current.After, first)
			current.Count++
		case current != nil:
			current.Until = max(last, current.Last)
			r.lost(*current)
			current = nil
		}
	}
	return current
}

// lost adds a period of lost writes.
func (r *reading) lost(l record.Loss) {
	r.result.Losses = append(r.result.Losses, l)
	if len(r.result.Losses) > 64*record.MaxLosses {
		r.result.Losses = record.JoinLosses(r.result.Losses)
	}
}

// readPrimary reads a page from the primary that serves its slot, and refreshes the layout after an
// error, as the slot may have moved.
func (r *reading) readPrimary(
	ctx context.Context, b *Book, p *page,
) (primary Node, present contents, err error) {
	for range readTries {
		primary, err = r.layout.primary(r.layout.shardOf(p.slot))
		if err == nil {
			if present, err = r.read(ctx, b, p, primary); err == nil || ctx.Err() != nil {
				return primary, present, err
			}
		}
		if !r.audit.Wait(ctx, pollEvery) {
			return primary, present, context.Cause(ctx)
		}
		layout, discoverErr := r.audit.Discover(ctx)
		if discoverErr == nil {
			r.layout = layout
		}
	}
	return primary, present, err
}

// contents are what a node has of a page.
type contents struct {
	bits     []byte // the numbers that are present, as a bitmap like page.acked
	repeated uint64 // numbers that were counted more than once
}

func (c *contents) put(n uint64, count int64) {
	if count > 0 {
		c.bits[n/8] |= 0x80 >> (n % 8)
	}
	if count > 1 {
		c.repeated++
	}
}

// read returns what a node has of a page.
func (r *reading) read(ctx context.Context, b *Book, p *page, n Node) (contents, error) {
	switch {
	case b.unique:
		return r.readKeys(ctx, p, n)
	case !b.counted:
		bitmap, err := r.readString(ctx, p.key, len(p.acked), n)
		return contents{bits: bitmap}, err
	}
	counts, err := r.readString(ctx, p.key, int(p.next), n)
	found := contents{bits: make([]byte, len(p.acked))}
	for i, count := range counts {
		found.put(uint64(i), int64(count))
	}
	return found, err
}

// readString reads the first bytes of a key. Beyond the end of its string all are zero.
func (r *reading) readString(ctx context.Context, key string, size int, n Node) ([]byte, error) {
	text := make([]byte, 0, size)
	for len(text) < size {
		end := min(len(text)+chunkBytes, size)
		request := resp.AppendCommand(nil, "GETRANGE", key, strconv.Itoa(len(text)),
			strconv.Itoa(end-1))
		values, err := r.nodes.exchange(ctx, n, r.layout.ShardOf != nil, request, 1)
		switch {
		case err != nil:
			return nil, err
		case values[0].IsError():
			return nil, replyError(n, values[0])
		case len(values[0].Text) > end-len(text):
			return nil, fmt.Errorf("%s replied to GETRANGE with %d bytes instead of %d", n.Address,
				len(values[0].Text), end-len(text))
		}
		text = append(text, values[0].Text...)
		text = append(text, make([]byte, end-len(text))...)
	}
	return text, nil
}

// readKeys is read for unique keys.
func (r *reading) readKeys(ctx context.Context, p *page, n Node) (contents, error) {
	found := contents{bits: make([]byte, len(p.acked))}
	for from := uint64(0); from < p.next; from += keysAtOnce {
		to := min(from+keysAtOnce, p.next)
		values, err := r.nodes.exchange(ctx, n, r.layout.ShardOf != nil,
			resp.AppendCommand(nil, keyWords("MGET", p.key, from, to)...), 1)
		switch {
		case err != nil:
			return found, err
		case values[0].IsError():
			return found, replyError(n, values[0])
		case uint64(len(values[0].Items)) != to-from:
			return found, fmt.Errorf("%s replied to MGET of %d keys with %d values", n.Address, to-from,
				len(values[0].Items))
		}
		for i, v := range values[0].Items {
			if v.Type == '_' {
				continue
			}
			count, err := strconv.ParseInt(v.Text, 10, 64)
			if err != nil {
				count = 1 // somebody else wrote to it
			}
			found.put(from+uint64(i), count)
		}
	}
	return found, nil
}

// conclude adds the figures over all pages, and deletes the keys.
func (r *reading) conclude(ctx context.Context, books []*Book) {
	result := r.result
	for _, missing := range r.replicaMissing {
		result.ReplicaMissing = max(result.ReplicaMissing, missing)
	}
	result.Replicas = len(r.replicaMissing)
	var primaries settingsOfPrimaries
	for _, n := range r.layout.Nodes {
		info, err := r.audit.infoOf(ctx, n.Address)
		if err != nil {
			continue
		}
		r.audit.evictions.add(info, false, true)
		if n.Primary {
			primaries.add(n.Address, r.settings(ctx, n, info))
		}
	}
	result.Settings = primaries.String()
	result.Evictions = r.audit.evictions.result()
	result.Losses = record.JoinLosses(result.Losses)
	for i := range result.Losses {
		l := &result.Losses[i]
		for _, b := range books {
			l.Errors += b.errors.between(l.First, l.Last)
		}
		result.Errors += l.Errors
	}
	if !r.audit.Keep && result.Unread == "" {
		r.remove(ctx, books)
	}
}

// settings returns a primary's persistence settings and limits, except those that the ACL user may
// not read.
func (r *reading) settings(ctx context.Context, n Node, info redis.Info) string {
	text := "appendonly no"
	if info.On("aof_enabled") {
		text = "appendonly yes"
	}
	for _, name := range []string{"appendfsync", "save", "min-replicas-to-write"} {
		values, err := r.nodes.exchange(ctx, n, r.layout.ShardOf != nil,
			resp.AppendCommand(nil, "CONFIG", "GET", name), 1)
		if err == nil && len(values[0].Items) == 2 {
			text += ", " + name + " " + strconv.Quote(values[0].Items[1].Text)
		}
	}
	if policy := info["maxmemory_policy"]; policy != "" {
		text += ", maxmemory-policy " + policy
	}
	return text
}

// remove deletes the ledger's keys. Keys that cannot be deleted stay until their TTL ends.
func (r *reading) remove(ctx context.Context, books []*Book) {
	for _, b := range books {
		for shard := range b.pages {
			p := &b.pages[shard]
			primary, err := r.layout.primary(r.layout.shardOf(p.slot))
			if err != nil {
				continue
			}
			if err := r.removePage(ctx, b, p, primary); err != nil {
				r.result.AddNote(fmt.Sprintf("Failed to delete the ledger's keys %s: %v.", p.key, err))
			}
		}
	}
}

func (r *reading) removePage(ctx context.Context, b *Book, p *page, primary Node) error {
	del := func(words []string) error {
		values, err := r.nodes.exchange(ctx, primary, r.layout.ShardOf != nil,
			resp.AppendCommand(nil, words...), 1)
		if err == nil && values[0].IsError() {
			err = replyError(primary, values[0])
		}
		return err
	}
	if !b.unique {
		return del([]string{"UNLINK", p.key})
	}
	for from := uint64(0); from < p.next; from += keysAtOnce {
		err := del(keyWords("UNLINK", p.key, from, min(from+keysAtOnce, p.next)))
		if err != nil {
			return err
		}
	}
	return nil
}

func keyWords(command, key string, from, to uint64) []string {
	words := []string{command}
	for i := from; i < to; i++ {
		words = append(words, key+":"+strconv.FormatUint(i, 10))
	}
	return words
}

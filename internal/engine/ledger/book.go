package ledger

import (
	"crypto/rand"
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/redquake/redquake/internal/redis/topology"
)

const (
	// maxWrites is how many ledger writes one Book numbers, over all its shards: a byte each, and 12
	// if they are more than blockTime apart. 64 MiB last for an hour at 18,000 a second.
	maxWrites = 1 << 26
	// A block is consecutive writes that share one span of instants: at most blockWrites, which were
	// numbered within blockTime, in ns.
	blockWrites = 16
	blockTime   = 10_000_000
	// instantUnit is the resolution of those instants, in ns; 32 bits of them are 4.9 days.
	instantUnit = 100_000
)

// Options identify a book and determine its keys.
type Options struct {
	Prefix string // of the load's keyspace: access rules may allow no other keys
	Run    string // the run's name, to identify keys that remain in Redis
	Writer int    // unique over all event loops of all pods of the run
	// Unique writes a separate key for each number instead of a bit: if keys may be evicted, a bitmap
	// would be lost as a whole.
	Unique bool
	// Counted has the server count how often it executes each write, in a byte instead of a bit, or in
	// the key: client libraries may send a request more than once.
	Counted bool
	// Shards is the number of shards, at least 1. ShardOf returns the shard that serves a hash slot,
	// below 0 for none; nil if there is only one.
	Shards  int
	ShardOf func(slot uint16) int
}

// Book is one event loop's ledger. Only that loop's goroutine may use it; others may read it once
// the loop has ended.
type Book struct {
	unique  bool
	counted bool
	left    uint64 // number of writes until the book is full
	pages   []page
	errors  errorLog
}

// page is the ledger of one shard. Bits are in the order of Redis: the first is the highest bit of
// the first byte.
type page struct {
	key           string
	slot          uint16
	write         encoding
	next          uint64
	acked, failed []byte
	blocks        []block // ascending
	began         int64   // when the last block began
}

// block is the time from the first to the last acknowledgement of consecutive writes, in units of
// instantUnit: first is rounded down, last is rounded up, and 0 if none was acknowledged.
type block struct {
	from        uint32 // the number of its first write
	first, last uint32
}

// NewBook creates a ledger. The error names shards for which no key was found: the prefix may
// contain a hash tag, which maps all keys to one slot.
func NewBook(o Options) (*Book, error) {
	b := &Book{
		unique:  o.Unique,
		counted: o.Counted,
		left:    maxWrites,
		pages:   make([]page, max(o.Shards, 1)),
	}
	keys, err := shardKeys(o.keyBase(), len(b.pages), o.ShardOf)
	if err != nil {
		return nil, err
	}
	for i, key := range keys {
		b.pages[i] = page{
			key:   key,
			slot:  topology.SlotOf([]byte(key)),
			write: b.encodingOf(key),
		}
	}
	return b, nil
}

// keyBase is the prefix of a writer's keys. It contains a random part: a second run may have the
// same name, and keys of a first run that was killed must not be mistaken for its writes.
func (o *Options) keyBase() string {
	return fmt.Sprintf("%sledger:%s:%d:%s", o.Prefix, o.Run, o.Writer,
		strings.ToLower(rand.Text()[:8]))
}

// tagTries bounds the search for hash tags: with one slot of 16,384 per shard, a tag is missed once
// in e^18 searches.
const tagTries = 18 * topology.SlotCount

// shardKeys finds a key for each shard: base and a hash tag of a slot of that shard.
func shardKeys(base string, shards int, shardOf func(slot uint16) int) ([]string, error) {
	if shardOf == nil {
		if shards != 1 {
			return nil, fmt.Errorf("ledger: %d shards without a mapping of slots to shards", shards)
		}
		return []string{base}, nil
	}
	keys := make([]string, shards)
	missing := shards
	for i := 0; i < tagTries && missing > 0; i++ {
		key := base + ":{" + strconv.Itoa(i) + "}"
		shard := shardOf(topology.SlotOf([]byte(key)))
		if shard >= 0 && shard < shards && keys[shard] == "" {
			keys[shard] = key
			missing--
		}
	}
	if missing > 0 {
		return nil, fmt.Errorf(
			"ledger: no key with prefix %q belongs to %d of the %d shards: keyspace.prefix contains a hash tag ({...}), or a shard serves no slot",
			base, missing, shards)
	}
	return keys, nil
}

// Shards is the number of shards, at least 1.
func (b *Book) Shards() int {
	return len(b.pages)
}

// Key is the key of the bits or counts; with Unique the prefix of each key.
func (b *Book) Key(shard int) string {
	return b.pages[shard].key
}

// Slot is the hash slot of a shard's keys. If the slot moves to another primary during the load,
// the writes have to follow it.
func (b *Book) Slot(shard int) uint16 {
	return b.pages[shard].slot
}

// Next returns the number of the next ledger write to a shard, at an instant; false once the book
// is full, after which the load continues without ledger writes.
func (b *Book) Next(shard int, at int64) (n uint64, ok bool) {
	if b.left == 0 {
		return 0, false
	}
	b.left--
	p := &b.pages[shard]
	n = p.next
	p.next++
	if n%8 == 0 {
		p.acked, p.failed = append(p.acked, 0), append(p.failed, 0)
	}
	last := len(p.blocks) - 1
	if last < 0 || n-uint64(p.blocks[last].from) >= blockWrites || at-p.began >= blockTime {
		p.blocks, p.began = append(p.blocks, block{from: uint32(n)}), at
	}
	return n, true
}

// encoding is the command of a page's writes: all but the number.
type encoding struct {
	head   []byte // up to the length of the word with the number
	before string // the beginning of that word
	tail   string // what follows the number
}

func (b *Book) encodingOf(key string) encoding {
	const one = "\r\n$1\r\n1\r\n"
	switch {
	case b.unique && b.counted:
		return encoding{head: []byte("*2\r\n$4\r\nINCR\r\n$"), before: key + ":", tail: "\r\n"}
	case b.unique:
		return encoding{head: []byte("*3\r\n$3\r\nSET\r\n$"), before: key + ":", tail: one}
	case b.counted:
		return encoding{
			head: fmt.Appendf(nil, "*8\r\n$8\r\nBITFIELD\r\n$%d\r\n%s\r\n$8\r\nOVERFLOW\r\n$3\r\nSAT\r\n"+
				"$6\r\nINCRBY\r\n$2\r\nu8\r\n$", len(key), key),
			before: "#",
			tail:   one,
		}
	}
	return encoding{
		head: fmt.Appendf(nil, "*4\r\n$6\r\nSETBIT\r\n$%d\r\n%s\r\n$", len(key), key),
		tail: one,
	}
}

func (e *encoding) append(dst []byte, n uint64, tail string) []byte {
	dst = append(dst, e.head...)
	dst = strconv.AppendInt(dst, int64(len(e.before)+digitsOf(n)), 10)
	dst = append(dst, '\r', '\n')
	dst = append(dst, e.before...)
	dst = strconv.AppendUint(dst, n, 10)
	return append(dst, tail...)
}

// Append encodes write n: a command with one reply. It is idempotent unless it is counted.
func (b *Book) Append(dst []byte, shard int, n uint64) []byte {
	e := &b.pages[shard].write
	return e.append(dst, n, e.tail)
}

// Settle records the outcome of write n at an instant. Acked and Failed are final.
func (b *Book) Settle(shard int, n uint64, o Outcome, at int64) {
	p := &b.pages[shard]
	i, bit := n/8, byte(0x80)>>(n%8)
	switch {
	case n >= p.next || (p.acked[i]|p.failed[i])&bit != 0:
	case o == Acked:
		p.blocks[p.blockOf(n)].acked(at)
		p.acked[i] |= bit
	case o == Failed:
		p.failed[i] |= bit
	}
	if o != Acked {
		b.errors.add(at)
	}
}

// acked extends a block by an acknowledgement.
func (b *block) acked(at int64) {
	first := uint32(min(max(at, 0)/instantUnit, 1<<32-1))
	last := uint32(min((max(at, 1)+instantUnit-1)/instantUnit, 1<<32-1))
	if b.last > 0 {
		first, last = min(b.first, first), max(b.last, last)
	}
	b.first, b.last = first, last
}

// blockOf is the index of the block that contains write n.
func (p *page) blockOf(n uint64) int {
	last := len(p.blocks) - 1
	for range 4 { // outcomes come soon, as a rule
		if last < 0 || uint64(p.blocks[last].from) <= n {
			return last
		}
		last--
	}
	return sort.Search(last+1, func(i int) bool { return uint64(p.blocks[i].from) > n }) - 1
}

// Erred records that another request than a ledger write did not succeed: errors during a loss show
// that clients could notice it.
func (b *Book) Erred(at int64) {
	b.errors.add(at)
}

// AppendExtend encodes a command with one reply that extends a shard's key for the given number of
// writes, so that none of them has to grow it. It must not be sent during the load. With Unique it
// encodes nothing.
func (b *Book) AppendExtend(dst []byte, shard int, writes uint64) []byte {
	if b.unique {
		return dst
	}
	last := max(min(writes, maxWrites), 1) - 1
	return b.pages[shard].write.append(dst, last, "\r\n$1\r\n0\r\n")
}

// bytesOfEight is how much of a shard's key eight writes take, without Unique.
func (b *Book) bytesOfEight() int {
	if b.counted {
		return 8
	}
	return 1
}

func digitsOf(n uint64) int {
	digits := 1
	for ; n >= 10; n /= 10 {
		digits++
	}
	return digits
}

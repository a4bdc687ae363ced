package ledger

import (
	"bufio"
	"bytes"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/redis/resp"
	"github.com/redquake/redquake/internal/redis/topology"
)

func newBook(t testing.TB, o Options) *Book {
	t.Helper()
	b, err := NewBook(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// words decodes one encoded command.
func words(t *testing.T, request []byte) []string {
	t.Helper()
	in := bufio.NewReader(bytes.NewReader(request))
	v, err := resp.ReadValue(in)
	if err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	if in.Buffered() > 0 {
		t.Fatalf("%q is more than one command", request)
	}
	var words []string
	for _, item := range v.Items {
		words = append(words, item.Text)
	}
	return words
}

func TestSlotIsThatOfRedis(t *testing.T) {
	// From CLUSTER KEYSLOT of a Redis 7.0.15.
	for key, want := range map[string]uint16{"123456789": 12739, "foo": 12182, "{foo}:1": 12182, "a{}b{foo}": 976} {
		if got := topology.SlotOf([]byte(key)); got != want {
			t.Errorf("slotOf(%q) = %d, want %d", key, got, want)
		}
	}
}

func TestKeysBelongToTheirShards(t *testing.T) {
	third := func(slot uint16) int { return int(slot) * 3 / topology.SlotCount }
	b := newBook(t, Options{Prefix: "rq:", Run: "r", Writer: 7, Shards: 3, ShardOf: third})
	for shard := range 3 {
		if got := third(b.Slot(shard)); got != shard {
			t.Errorf("key %s of shard %d belongs to shard %d", b.Key(shard), shard, got)
		}
		if b.Slot(shard) != topology.SlotOf([]byte(b.Key(shard))) || !strings.HasPrefix(b.Key(shard), "rq:ledger:r:7:") {
			t.Errorf("key %s, slot %d", b.Key(shard), b.Slot(shard))
		}
	}
	oneSlot := func(slot uint16) int {
		if slot == 4711 {
			return 1
		}
		return 0
	}
	if b := newBook(t, Options{Run: "r", Shards: 2, ShardOf: oneSlot}); b.Slot(1) != 4711 {
		t.Errorf("slot %d", b.Slot(1))
	}
}

// A second run of the same name does not count the keys of the first one.
func TestKeysOfTwoRunsDiffer(t *testing.T) {
	o := Options{Prefix: "rq:", Run: "checkout", Writer: 1}
	if a, b := newBook(t, o), newBook(t, o); a.Key(0) == b.Key(0) {
		t.Errorf("both write %s", a.Key(0))
	}
}

func TestShardsThatKeysCannotDistinguish(t *testing.T) {
	third := func(slot uint16) int { return int(slot) * 3 / topology.SlotCount }
	if _, err := NewBook(Options{Prefix: "{user}:", Run: "r", Shards: 3, ShardOf: third}); err == nil ||
		!strings.Contains(err.Error(), "hash tag") {
		t.Errorf("error %v", err)
	}
	if _, err := NewBook(Options{Run: "r", Shards: 3}); err == nil {
		t.Error("no error for three shards that keys cannot distinguish")
	}
}

func TestEncoding(t *testing.T) {
	for _, row := range []struct {
		unique, counted bool
		write, extend   string // KEY and <n> are replaced
	}{
		{false, false, "SETBIT KEY <n> 1", "SETBIT KEY 999 0"},
		{true, false, "SET KEY:<n> 1", ""},
		{false, true, "BITFIELD KEY OVERFLOW SAT INCRBY u8 #<n> 1", "BITFIELD KEY OVERFLOW SAT INCRBY u8 #999 0"},
		{true, true, "INCR KEY:<n>", ""},
	} {
		b := newBook(t, Options{Prefix: "rq:", Run: "r", Writer: 3, Unique: row.unique, Counted: row.counted})
		for _, n := range []uint64{0, 9, 10, 99, 100, 12345678} {
			want := strings.NewReplacer("KEY", b.Key(0), "<n>", strconv.FormatUint(n, 10)).Replace(row.write)
			if got := strings.Join(words(t, b.Append(nil, 0, n)), " "); got != want {
				t.Errorf("%+v: write %d is %s", row, n, got)
			}
		}
		extend := b.AppendExtend(nil, 0, 1000)
		if row.extend == "" {
			if len(extend) != 0 {
				t.Errorf("%+v: %q", row, extend)
			}
			continue
		}
		if got := strings.Join(words(t, extend), " "); got != strings.ReplaceAll(row.extend, "KEY", b.Key(0)) {
			t.Errorf("%+v: extended by %s", row, got)
		}
	}
}

// TestAccount draws outcomes and losses and compares the account with a plain list of them.
func TestAccount(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		b := newBook(t, Options{Run: "r"})
		p := &b.pages[0]
		count := draw.IntN(300)
		var want record.Ledger
		var first, last int64
		present := make([]byte, (count+7)/8)
		for i := range count {
			n, _ := b.Next(0, 0)
			at := int64(i+1)*1_000_000 + draw.Int64N(500_000)
			outcome := Outcome(draw.IntN(3))
			there := draw.IntN(4) > 0
			if outcome != Unknown || draw.IntN(2) == 0 { // unsettled is unknown
				b.Settle(0, n, outcome, at)
			}
			switch {
			case outcome == Acked:
				want.Acked++
				if !there {
					want.Lost++
					if first == 0 {
						first = at
					}
					last = at
				}
			case outcome == Failed:
				want.Failed++
				if there {
					want.FailedPresent++
				}
			default:
				want.Unknown++
				if there {
					want.UnknownPresent++
				}
			}
			if there {
				present[i/8] |= 0x80 >> (i % 8)
			}
		}
		r := reading{result: &record.Ledger{Acked: want.Acked, Failed: want.Failed}}
		r.account(p, present)
		got := *r.result
		if want.Lost > 0 {
			slack := int64(blockWrites+1) * 1_500_000
			if got.FirstLost > first || got.FirstLost < first-slack || got.LastLost < last || got.LastLost > last+slack {
				t.Fatalf("window %d to %d, lost were %d to %d", got.FirstLost, got.LastLost, first, last)
			}
		}
		got.FirstLost, got.LastLost = 0, 0
		if got.Acked != want.Acked || got.Lost != want.Lost || got.Unknown != want.Unknown ||
			got.UnknownPresent != want.UnknownPresent || got.FailedPresent != want.FailedPresent {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	}
}

func TestSettledWritesDoNotChange(t *testing.T) {
	b := newBook(t, Options{Run: "r"})
	n, _ := b.Next(0, 0)
	b.Settle(0, n, Acked, 5)
	b.Settle(0, n, Failed, 6)
	b.Settle(0, 99, Acked, 6) // never numbered
	if p := &b.pages[0]; p.acked[0] != 0x80 || p.failed[0] != 0 {
		t.Errorf("acked %x, failed %x", p.acked, p.failed)
	}
}

func TestFullBook(t *testing.T) {
	b := newBook(t, Options{Run: "r"})
	b.left = 2
	for i, want := range []bool{true, true, false} {
		if _, ok := b.Next(0, 0); ok != want {
			t.Errorf("write %d: %v", i, ok)
		}
	}
}

func TestErrorsBetween(t *testing.T) {
	var l errorLog
	const errors = 100_000
	for i := range int64(errors) {
		l.add(i * 10_000_000)
	}
	if len(l.spans) > maxErrorSpans {
		t.Errorf("%d spans", len(l.spans))
	}
	if got := l.between(0, errors*10_000_000); got != errors {
		t.Errorf("%d errors", got)
	}
	if got := l.between(errors*10_000_000, 2*errors*10_000_000); got != 0 {
		t.Errorf("%d errors after the last", got)
	}
	// The steps at both ends may contain a few more errors than the window.
	if got := l.between(errors/2*10_000_000, errors/2*10_000_000+1e9); got < 100 || got > 200 {
		t.Errorf("%d errors in a second that had 100", got)
	}
}

func BenchmarkWrite(b *testing.B) {
	book := newBook(b, Options{Prefix: "rq:", Run: "0d6a2c1e-8a51-4a0e-9a5e-3f8f0c5d7e11", Writer: 7})
	buffer := make([]byte, 0, 256)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		n, ok := book.Next(0, int64(i)*1000)
		if !ok {
			book = newBook(b, Options{Prefix: "rq:", Run: "r"})
			continue
		}
		buffer = book.Append(buffer[:0], 0, n)
		book.Settle(0, n, Acked, int64(i)*1000)
	}
}

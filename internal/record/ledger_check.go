package record

import (
	"strings"

	"github.com/redquake/redquake/internal/record/codec"
)

// LedgerCheck is what a load pod knows of its ledger during the load: when it was last read as a whole, and why it cannot be read.
type LedgerCheck struct {
	At         int64  // of the last check in which all of it was read: writes acknowledged until then were looked for; 0 = none yet
	Failure    string // why the latest check could not read all of it; "" = it did
	Unknowable bool   // no further check will tell a lost write
}

// maxCheckFailure bounds the text of a failure, in bytes.
const maxCheckFailure = 512

// follow replaces the check by a later one, which need not have read all.
func (c *LedgerCheck) follow(later LedgerCheck) {
	c.At = max(c.At, later.At)
	c.Failure = strings.ToValidUTF8(later.Failure[:min(len(later.Failure), maxCheckFailure)], "")
	c.Unknowable = c.Unknowable || later.Unknowable
}

// LedgerCheck returns the latest checks of a pod's ledger: the zero value if there was none.
func (s *Series) LedgerCheck(pod int) LedgerCheck { return s.pods[pod].ledger }

// mergeLost adds the lost writes of another interval.
func (iv *Interval) mergeLost(from *Interval) {
	for len(iv.Lost) < len(from.Lost) {
		iv.Lost = append(iv.Lost, 0)
	}
	for k, n := range from.Lost {
		iv.Lost[k] += n
	}
}

func appendLost(dst []byte, lost []uint64) []byte {
	return codec.AppendList(dst, lost, func(dst []byte, n *uint64) []byte { return codec.AppendUint(dst, *n) })
}

func readLost(r *codec.Reader) []uint64 {
	list := codec.ReadList(r, 1, func(n *uint64) { *n = r.Uint() })
	if len(list) > MaxShards {
		r.Fail("lost writes of %d shards", len(list))
		return nil
	}
	return list
}

func appendCheck(dst []byte, c *LedgerCheck) []byte {
	return codec.AppendBool(codec.AppendText(codec.AppendInt(dst, c.At), c.Failure), c.Unknowable)
}

func readCheck(r *codec.Reader, c *LedgerCheck) { *c = LedgerCheck{r.Int(), r.Text(), r.Bool()} }

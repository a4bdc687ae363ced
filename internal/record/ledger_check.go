package record

import (
	"strings"

	"github.com/redquake/redquake/internal/record/codec"
)

// LedgerCheck is what a load pod knows of its ledger during the load: when it was last read as a
// whole, and why it cannot be read.
type LedgerCheck struct {
	// of the last check in which all of it was read: writes acknowledged until then were looked for; 0
	// = none yet
	At         int64
	Failure    string // why the latest check could not read all of it; "" = it did
	Unknowable bool   // no further check will tell a lost write
}

// maxCheckFailure bounds the text of a failure, in bytes.
const maxCheckFailure = 512

// Follow replaces the check by a later one, which need not have read all.
func (c *LedgerCheck) Follow(later LedgerCheck) {
	c.At = max(c.At, later.At)
	c.Failure = strings.ToValidUTF8(later.Failure[:min(len(later.Failure), maxCheckFailure)], "")
	c.Unknowable = c.Unknowable || later.Unknowable
}

// AppendLost writes the lost writes of shards.
func AppendLost(dst []byte, lost []uint64) []byte {
	return codec.AppendList(dst, lost, func(dst []byte, n *uint64) []byte {
		return codec.AppendUint(dst, *n)
	})
}

// ReadLost reads the output of AppendLost: at most MaxShards.
func ReadLost(r *codec.Reader) []uint64 {
	list := codec.ReadList(r, 1, func(n *uint64) { *n = r.Uint() })
	if len(list) > MaxShards {
		r.Fail("lost writes of %d shards", len(list))
		return nil
	}
	return list
}

// AppendCheck writes a check of the ledger.
func AppendCheck(dst []byte, c *LedgerCheck) []byte {
	return codec.AppendBool(codec.AppendText(codec.AppendInt(dst, c.At), c.Failure), c.Unknowable)
}

// ReadCheck reads the output of AppendCheck.
func ReadCheck(r *codec.Reader, c *LedgerCheck) {
	*c = LedgerCheck{r.Int(), r.Text(), r.Bool()}
}

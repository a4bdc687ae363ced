package record

import (
	"cmp"
	"slices"

	"github.com/redquake/redquake/internal/record/codec"
)

// Unobserved is a Redis server that cannot be read.
type Unobserved struct {
	Address string // host:port; "" = that of the target, which was not reached
	Reason  string // the error of the last attempt; "" = it could be read after all
}

// maxUnobserved bounds Series.Unobserved.
const maxUnobserved = 64

// Unobserved returns the servers of which there is no reading, by address, and why: the first maxUnobserved that failed.
func (s *Series) Unobserved() []Unobserved {
	return slices.DeleteFunc(slices.Clone(s.unobserved), func(u Unobserved) bool {
		return slices.ContainsFunc(s.servers, func(r Server) bool { return r.Address == u.Address })
	})
}

func (s *Series) addUnobserved(list []Unobserved) {
	for _, u := range list {
		at, known := slices.BinarySearchFunc(s.unobserved, u, func(a, b Unobserved) int { return cmp.Compare(a.Address, b.Address) })
		switch {
		case known && u.Reason == "":
			s.unobserved = slices.Delete(slices.Clone(s.unobserved), at, at+1) // a series that is encoded shares the list
		case known:
			s.unobserved = slices.Clone(s.unobserved)
			s.unobserved[at] = u
		case u.Reason != "" && len(s.unobserved) < maxUnobserved:
			s.unobserved = slices.Insert(slices.Clip(s.unobserved), at, u)
		}
	}
}

func appendUnobserved(dst []byte, list []Unobserved) []byte {
	return codec.AppendList(dst, list, func(dst []byte, u *Unobserved) []byte {
		return codec.AppendText(codec.AppendText(dst, u.Address), u.Reason)
	})
}

func readUnobserved(r *codec.Reader) []Unobserved {
	return codec.ReadList(r, 2, func(u *Unobserved) { *u = Unobserved{r.Text(), r.Text()} })
}

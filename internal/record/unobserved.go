package record

import "github.com/redquake/redquake/internal/record/codec"

// Unobserved is a Redis server that cannot be read.
type Unobserved struct {
	Address string // host:port; "" = that of the target, which was not reached
	Reason  string // the error of the last attempt; "" = it could be read after all
}

// AppendUnobserved writes servers that cannot be read.
func AppendUnobserved(dst []byte, list []Unobserved) []byte {
	return codec.AppendList(dst, list, func(dst []byte, u *Unobserved) []byte {
		return codec.AppendText(codec.AppendText(dst, u.Address), u.Reason)
	})
}

// ReadUnobserved reads the output of AppendUnobserved.
func ReadUnobserved(r *codec.Reader) []Unobserved {
	return codec.ReadList(r, 2, func(u *Unobserved) { *u = Unobserved{r.Text(), r.Text()} })
}

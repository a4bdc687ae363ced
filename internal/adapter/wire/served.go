package wire

import (
	"fmt"

	"github.com/tinylib/msgp/msgp"
)

// Connect reads the settings of the message connect.
func (f *Fields) Connect() (Settings, error) {
	f.expect(1)
	var s Settings
	f.each(f.mapping(), func() {
		switch key := f.text(maxName); key {
		case "topology":
			s.Topology = Topology(f.text(maxName))
		case "addresses":
			f.each(f.array(), func() { s.Addresses = append(s.Addresses, f.text(MaxText)) })
		case "database":
			s.Database = int(f.integer())
		case "tls":
			s.TLS = f.tls()
		case "inFlight":
			s.InFlight = int(f.integer())
		case "options":
			s.Options = f.options()
		default:
			to := map[string]*string{
				"primaryName":      &s.PrimaryName,
				"username":         &s.Username,
				"password":         &s.Password,
				"sentinelUsername": &s.SentinelUsername,
				"sentinelPassword": &s.SentinelPassword,
			}[key]
			f.optional(to)
		}
	})
	f.skipRest()
	if f.err == nil && (s.InFlight < 1 || s.InFlight > maxInFlight) {
		return s, fmt.Errorf("inFlight is %d, not between 1 and %d", s.InFlight, maxInFlight)
	}
	return s, f.err
}

// optional reads a text or nil; it skips the value if to is nil.
func (f *Fields) optional(to *string) {
	switch {
	case to == nil:
		f.skip(0)
	case !f.isNil():
		*to = f.text(MaxMessage)
	}
}

func (f *Fields) tls() *TLS {
	if f.isNil() {
		return nil
	}
	t := &TLS{}
	f.each(f.mapping(), func() {
		key := f.text(maxName)
		if key == "insecure" {
			yes, rest, err := msgp.ReadBoolBytes(f.rest)
			f.fail(err)
			t.Insecure, f.rest = yes, rest
			return
		}
		f.optional(map[string]*string{
			"ca":          &t.CA,
			"certificate": &t.Certificate,
			"key":         &t.Key,
			"serverName":  &t.ServerName,
		}[key])
	})
	return t
}

func (f *Fields) options() map[string]any {
	if f.err != nil {
		return nil
	}
	options, rest, err := msgp.ReadMapStrIntfBytes(f.rest, nil)
	if err != nil {
		f.fail(err)
		return nil
	}
	f.rest = rest
	return options
}

// Request is a request as an adapter reads it.
type Request struct {
	ID       uint64
	Flags    int64
	Commands [][][]byte // valid until the next message is read
}

// Requests reads the requests of the message.
func (f *Fields) Requests(each func(Request)) error {
	f.expect(1)
	f.items(3, func(item *Fields) {
		r := Request{ID: item.unsigned(), Flags: item.integer()}
		item.each(item.array(), func() {
			var words [][]byte
			item.each(item.array(), func() { words = append(words, item.bytes()) })
			r.Commands = append(r.Commands, words)
		})
		if item.err == nil {
			each(r)
		}
	})
	f.skipRest()
	return f.err
}

// Ping reads the time of the message ping.
func (f *Fields) Ping() (int64, error) {
	f.expect(1)
	t := f.integer()
	f.skipRest()
	return t, f.err
}

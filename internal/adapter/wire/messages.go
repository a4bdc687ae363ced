package wire

import (
	"fmt"

	"github.com/tinylib/msgp/msgp"

	"github.com/redquake/redquake/internal/redis/resp"
)

// Hello says which library an adapter drives.
type Hello struct {
	Version        int64
	Driver         string
	Library        string
	LibraryVersion string
	Runtime        string
}

// Append appends the message.
func (h Hello) Append(b []byte) []byte {
	b = msgp.AppendArrayHeader(b, 6)
	b = msgp.AppendString(b, NameHello)
	b = msgp.AppendInt64(b, h.Version)
	for _, text := range []string{h.Driver, h.Library, h.LibraryVersion, h.Runtime} {
		b = msgp.AppendString(b, text)
	}
	return b
}

// Hello reads the fields of the message.
func (f *Fields) Hello() (Hello, error) {
	f.expect(5)
	h := Hello{Version: f.integer()}
	if f.err == nil && h.Version != Version {
		return h, fmt.Errorf("it speaks version %d of the protocol, not %d", h.Version, Version)
	}
	for _, to := range []*string{&h.Driver, &h.Library, &h.LibraryVersion, &h.Runtime} {
		if *to = f.text(maxName); f.err == nil && *to == "" {
			return h, fmt.Errorf("an empty text")
		}
	}
	f.skipRest()
	return h, f.err
}

// Topology is how the servers belong together.
type Topology string

// The topologies.
const (
	Standalone Topology = "standalone"
	Sentinel   Topology = "sentinel"
	Cluster    Topology = "cluster"
)

// Settings say what an adapter connects to. Empty texts are sent as nil.
type Settings struct {
	Topology         Topology
	Addresses        []string
	PrimaryName      string
	Username         string
	Password         string
	SentinelUsername string
	SentinelPassword string
	Database         int
	TLS              *TLS
	// Options are the library's own: texts, float64, int64, booleans, nil, and maps and lists of them.
	Options  map[string]any
	InFlight int
}

// TLS is how connections are encrypted; the first three are PEM.
type TLS struct {
	CA          string
	Certificate string
	Key         string
	ServerName  string
	Insecure    bool
}

// Append appends the message connect. The error is about the type of an option.
func (s Settings) Append(b []byte) ([]byte, error) {
	b = msgp.AppendArrayHeader(b, 2)
	b = msgp.AppendString(b, NameConnect)
	b = msgp.AppendMapHeader(b, 11)
	b = appendEntry(b, "topology", string(s.Topology))
	b = msgp.AppendString(b, "addresses")
	b = msgp.AppendArrayHeader(b, uint32(len(s.Addresses)))
	for _, address := range s.Addresses {
		b = msgp.AppendString(b, address)
	}
	b = appendEntry(b, "primaryName", s.PrimaryName)
	b = appendEntry(b, "username", s.Username)
	b = appendEntry(b, "password", s.Password)
	b = appendEntry(b, "sentinelUsername", s.SentinelUsername)
	b = appendEntry(b, "sentinelPassword", s.SentinelPassword)
	b = msgp.AppendInt(msgp.AppendString(b, "database"), s.Database)
	b = s.TLS.append(msgp.AppendString(b, "tls"))
	b = msgp.AppendInt(msgp.AppendString(b, "inFlight"), s.InFlight)
	return msgp.AppendMapStrIntf(msgp.AppendString(b, "options"), s.Options)
}

func (t *TLS) append(b []byte) []byte {
	if t == nil {
		return msgp.AppendNil(b)
	}
	b = msgp.AppendMapHeader(b, 5)
	b = appendEntry(b, "ca", t.CA)
	b = appendEntry(b, "certificate", t.Certificate)
	b = appendEntry(b, "key", t.Key)
	b = appendEntry(b, "serverName", t.ServerName)
	return msgp.AppendBool(msgp.AppendString(b, "insecure"), t.Insecure)
}

// appendEntry appends an entry of a map; an empty text as nil.
func appendEntry(b []byte, key, text string) []byte {
	b = msgp.AppendString(b, key)
	if text == "" {
		return msgp.AppendNil(b)
	}
	return msgp.AppendString(b, text)
}

// RefusalKind is why an adapter cannot connect.
type RefusalKind string

// The kinds of refusals.
const (
	Invalid     RefusalKind = "invalid"     // the settings can never do
	Login       RefusalKind = "login"       // user or password
	Unreachable RefusalKind = "unreachable" // this can pass
)

// Refusal is the answer of an adapter that cannot connect, and an error.
type Refusal struct {
	Kind    RefusalKind
	Field   string // the path of a setting, or empty
	Message string
}

// Error is the message, with the field.
func (r *Refusal) Error() string {
	if r.Field == "" {
		return r.Message
	}
	return r.Field + ": " + r.Message
}

// Append appends the message refused.
func (r *Refusal) Append(b []byte) []byte {
	b = msgp.AppendArrayHeader(b, 4)
	for _, text := range []string{NameRefused, string(r.Kind), r.Field, r.Message} {
		b = msgp.AppendString(b, text)
	}
	return b
}

// Refused reads the fields of the message refused.
func (f *Fields) Refused() (*Refusal, error) {
	f.expect(3)
	r := &Refusal{
		Kind:    RefusalKind(f.text(maxName)),
		Field:   f.text(maxName),
		Message: f.text(MaxText),
	}
	switch r.Kind {
	case Invalid, Login, Unreachable:
	default:
		f.fail(fmt.Errorf("the unknown kind %q", r.Kind))
	}
	f.skipRest()
	return r, f.err
}

// Ready is the answer of an adapter that has connected.
type Ready struct {
	Capacity int               // requests in flight at a time
	Options  map[string]string // in force after the library's defaults
}

// Append appends the message.
func (r Ready) Append(b []byte) []byte {
	b = msgp.AppendArrayHeader(b, 3)
	b = msgp.AppendString(b, NameReady)
	b = msgp.AppendInt(b, r.Capacity)
	return msgp.AppendMapStrStr(b, r.Options)
}

// Ready reads the fields of the message, for a connect with inFlight.
func (f *Fields) Ready(inFlight int) (Ready, error) {
	f.expect(2)
	capacity := f.integer()
	if f.err == nil && (capacity < 1 || capacity > int64(inFlight)) {
		return Ready{}, fmt.Errorf("a capacity of %d, not between 1 and %d", capacity, inFlight)
	}
	r := Ready{Capacity: int(capacity), Options: map[string]string{}}
	entries := f.mapping()
	if entries > maxOptions {
		f.fail(fmt.Errorf("%d options; at most %d are allowed", entries, maxOptions))
	}
	f.each(entries, func() {
		name := f.text(maxOption)
		r.Options[name] = f.scalar()
	})
	f.skipRest()
	return r, f.err
}

// Wanted is the flag of a request whose replies are wanted.
const Wanted = 1

// AppendRequest appends a request, an item of the message requests. Commands are as they are
// encoded for Redis: arrays of bulk strings.
func AppendRequest(b []byte, id uint64, flags int, commands [][][]byte) []byte {
	b = msgp.AppendArrayHeader(b, 3)
	b = msgp.AppendUint64(b, id)
	b = msgp.AppendInt(b, flags)
	b = msgp.AppendArrayHeader(b, uint32(len(commands)))
	for _, words := range commands {
		b = msgp.AppendArrayHeader(b, uint32(len(words)))
		for _, word := range words {
			b = msgp.AppendBytes(b, word)
		}
	}
	return b
}

// OutcomeClass is what became of a request.
type OutcomeClass string

// The classes, see clients/PROTOCOL.md.
const (
	ClassOK      OutcomeClass = "ok"
	ClassNil     OutcomeClass = "nil"
	ClassReply   OutcomeClass = "reply"
	ClassRefused OutcomeClass = "refused"
	ClassTimeout OutcomeClass = "timeout"
	ClassLost    OutcomeClass = "lost"
	ClassOther   OutcomeClass = "other"
)

// Succeeded reports whether the application got a reply that is no error.
func (c OutcomeClass) Succeeded() bool {
	return c == ClassOK || c == ClassNil
}

// Outcome is what became of a request.
type Outcome struct {
	ID      uint64
	Sent    int64 // CLOCK_MONOTONIC, nanoseconds
	Done    int64
	Class   OutcomeClass
	Text    string       // what the library says of a failure
	Replies []resp.Value // nil unless they were wanted, and it succeeded
}

// Append appends the outcome, an item of the message outcomes, without replies.
func (o *Outcome) Append(b []byte, replies []any) ([]byte, error) {
	b = msgp.AppendArrayHeader(b, 6)
	b = msgp.AppendUint64(b, o.ID)
	b = msgp.AppendInt64(b, o.Sent)
	b = msgp.AppendInt64(b, o.Done)
	b = msgp.AppendString(b, string(o.Class))
	if o.Text == "" {
		b = msgp.AppendNil(b)
	} else {
		b = msgp.AppendString(b, o.Text)
	}
	if replies == nil {
		return msgp.AppendNil(b), nil
	}
	return msgp.AppendIntf(b, replies)
}

// Outcomes reads the outcomes of the message; each is called with one after the other, until it
// returns an error.
func (f *Fields) Outcomes(each func(o *Outcome) error) error {
	f.expect(1)
	f.items(6, func(item *Fields) {
		o := Outcome{
			ID:    item.unsigned(),
			Sent:  item.integer(),
			Done:  item.integer(),
			Class: OutcomeClass(item.text(maxName)),
		}
		if !item.isNil() {
			o.Text = item.text(MaxText)
		}
		if !item.isNil() {
			item.each(item.array(), func() { o.Replies = append(o.Replies, item.reply(1)) })
		}
		switch o.Class {
		case ClassOK, ClassNil, ClassReply, ClassRefused, ClassTimeout, ClassLost, ClassOther:
		default:
			item.fail(fmt.Errorf("an outcome has the unknown class %q", o.Class))
		}
		if item.err == nil {
			item.fail(each(&o))
		}
	})
	f.skipRest()
	return f.err
}

// AppendPing appends a ping that was sent at t.
func AppendPing(b []byte, t int64) []byte {
	b = msgp.AppendArrayHeader(b, 2)
	b = msgp.AppendString(b, NamePing)
	return msgp.AppendInt64(b, t)
}

// Pong is the answer to a ping.
type Pong struct {
	Time   int64 // of the ping
	Now    int64 // the adapter's clock
	CPU    int64 // nanoseconds that the adapter has used
	Memory int64 // resident, bytes
}

// Append appends the message.
func (p Pong) Append(b []byte) []byte {
	b = msgp.AppendArrayHeader(b, 5)
	b = msgp.AppendString(b, NamePong)
	for _, n := range []int64{p.Time, p.Now, p.CPU, p.Memory} {
		b = msgp.AppendInt64(b, n)
	}
	return b
}

// Pong reads the fields of the message.
func (f *Fields) Pong() (Pong, error) {
	f.expect(4)
	p := Pong{Time: f.integer(), Now: f.integer(), CPU: f.integer(), Memory: f.integer()}
	f.skipRest()
	return p, f.err
}

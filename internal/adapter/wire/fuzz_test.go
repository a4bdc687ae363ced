package wire

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// Whatever arrives is read to its end or refused, and needs memory in proportion to its bytes.
func FuzzMessages(f *testing.F) {
	outcome := Outcome{ID: 1, Sent: 2, Done: 3, Class: ClassOK}
	b := Batch{Name: NameOutcomes}
	b.Add(func(dst []byte) []byte {
		dst, _ = outcome.Append(dst, []any{nil, int64(1), []any{"x"}})
		return dst
	})
	var frame bytes.Buffer
	_ = b.Send(&frame)
	f.Add(frame.Bytes()[4:])
	f.Add(Hello{Version, "D", "l", "1", "r"}.Append(nil))
	f.Add((&Refusal{Kind: Login, Field: "password", Message: "no"}).Append(nil))
	f.Add(Ready{Capacity: 1, Options: map[string]string{"a": "b"}}.Append(nil))
	f.Add(Pong{1, 2, 3, 4}.Append(nil))
	f.Add(AppendPing(nil, 1))
	connect, _ := Settings{Topology: Cluster, Addresses: []string{"a:1"}, TLS: &TLS{}, InFlight: 1}.Append(nil)
	f.Add(connect)
	f.Fuzz(func(t *testing.T, message []byte) {
		framed := binary.BigEndian.AppendUint32(nil, uint32(len(message)))
		name, fields, err := NewReader(bytes.NewReader(append(framed, message...))).Next()
		if err != nil {
			return
		}
		switch name {
		case NameHello:
			_, err = fields.Hello()
		case NameConnect:
			_, err = fields.Connect()
		case NameRefused:
			_, err = fields.Refused()
		case NameReady:
			_, err = fields.Ready(10)
		case NameRequests:
			err = fields.Requests(func(Request) {})
		case NameOutcomes:
			err = fields.Outcomes(func(*Outcome) error { return nil })
		case NamePing:
			_, err = fields.Ping()
		case NamePong:
			_, err = fields.Pong()
		default:
			return
		}
		if err == nil && fields.left != 0 {
			t.Errorf("%s: %d fields are left", name, fields.left)
		}
	})
}

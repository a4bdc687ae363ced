package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// A list that is larger than a message is sent in several, without a loss.
func TestBatchSplits(t *testing.T) {
	b := Batch{Name: NameRequests}
	value := bytes.Repeat([]byte("x"), 3<<20)
	for id := range uint64(20) {
		b.Add(func(dst []byte) []byte {
			return AppendRequest(dst, id, 0, [][][]byte{{[]byte("SET"), []byte("k"), value}})
		})
	}
	var sent bytes.Buffer
	if err := b.Send(&sent); err != nil || b.Len() != 0 {
		t.Fatal(b.Len(), err)
	}
	r := NewReader(&sent)
	var messages, next uint64
	for {
		name, fields, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || name != NameRequests {
			t.Fatal(name, err)
		}
		messages++
		err = fields.Requests(func(r Request) {
			if r.ID != next || !bytes.Equal(r.Commands[0][2], value) {
				t.Errorf("request %d instead of %d", r.ID, next)
			}
			next++
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if messages != 4 || next != 20 {
		t.Errorf("%d messages, %d requests", messages, next)
	}
}

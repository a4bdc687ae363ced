package load

import (
	"strings"
	"sync/atomic"

	"github.com/redquake/redquake/internal/record"
)

// Samples keeps the first message of a server for each class of errors.
type Samples [record.NumClasses]atomic.Pointer[string]

// sampleMax is the most bytes of a message that are kept.
const sampleMax = 200

// Note keeps the message if it is the first of its class. It may be called concurrently.
func (s *Samples) Note(class record.Class, message []byte) {
	if s[class].Load() == nil {
		text := strings.ToValidUTF8(string(message[:min(len(message), sampleMax)]), "?")
		s[class].CompareAndSwap(nil, &text)
	}
}

// List returns the message of each class; "" = none.
func (s *Samples) List() (list [record.NumClasses]string) {
	for class := range list {
		if text := s[class].Load(); text != nil {
			list[class] = *text
		}
	}
	return list
}

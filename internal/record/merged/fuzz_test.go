package merged

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/redquake/redquake/internal/record/codec"
)

// FuzzDecode checks that no content of a record makes decoding, or reading what was decoded, panic or allocate out of
// proportion, and that it can be encoded again.
// The content is that before compression, which no random change survives.
func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob("testdata/series-v*.bin")
	if err != nil || len(files) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, file := range files {
		packed, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		z, err := gzip.NewReader(bytes.NewReader(packed[1:]))
		if err != nil {
			f.Fatal(err)
		}
		raw, err := io.ReadAll(z)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(packed[0], raw)
		f.Add(packed[0], raw[:len(raw)/2])
		f.Add(byte(0xff), raw)
	}
	f.Add(byte(seriesVersion), []byte{})
	f.Fuzz(func(t *testing.T, version byte, raw []byte) {
		packed := pack(raw)
		packed[0] = version
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := Decode(packed)
		runtime.ReadMemStats(&after)
		if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(512*len(raw)+1<<20); got > limit {
			t.Fatalf("%d bytes made it allocate %d", len(raw), got)
		}
		if err != nil {
			if !errors.Is(err, codec.ErrCorrupt) && version <= seriesVersion {
				t.Fatal(err)
			}
			return
		}
		_, _, _, _ = s.Len(), s.Requests(), s.Servers(), s.Holes()
		again, err := s.Encode(0)
		if err != nil {
			return // such as one that is too large
		}
		if _, err := Decode(again); err != nil {
			t.Fatalf("encoded again: %v", err)
		}
	})
}

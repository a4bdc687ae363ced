package merged

import (
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/codec"
)

func appendPartStreams(dst []byte, parts []partStream) []byte {
	return codec.AppendList(dst, parts, func(dst []byte, t *partStream) []byte {
		dst = appendStream(dst, &t.stream)
		dst = codec.AppendInt(dst, t.tried)
		return codec.AppendInt(dst, t.failed)
	})
}

func appendStream(b []byte, t *stream) []byte {
	b = codec.AppendUint(b, t.ok)
	b = codec.AppendInt(b, t.first)
	b = codec.AppendInt(b, t.last)
	return record.AppendGaps(b, t.gaps)
}

func readPartStreams(r *codec.Reader) []partStream {
	parts := codec.ReadList(r, 6, func(t *partStream) {
		readStream(r, &t.stream)
		t.tried, t.failed = r.Int(), r.Int()
	})
	if len(parts) > record.MaxParts {
		r.Fail("%d shards or parts", len(parts))
		return nil
	}
	return parts
}

// streams reads those of the probes of shards.
func readStreams(r *codec.Reader) []stream {
	streams := codec.ReadList(r, 4, func(t *stream) { readStream(r, t) })
	if len(streams) > record.MaxShards {
		r.Fail("probes of %d shards", len(streams))
		return nil
	}
	return streams
}

func readStream(r *codec.Reader, t *stream) {
	t.ok, t.first, t.last, t.known, t.gaps = r.Uint(), r.Int(), r.Int(), -1, record.ReadGaps(r)
}

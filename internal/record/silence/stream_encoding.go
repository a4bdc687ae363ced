package silence

import (
	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/codec"
)

// AppendPartStreams writes the streams of shards, or of parts.
func AppendPartStreams(dst []byte, parts []PartStream) []byte {
	return codec.AppendList(dst, parts, func(dst []byte, t *PartStream) []byte {
		dst = AppendStream(dst, &t.Stream)
		dst = codec.AppendInt(dst, t.Tried)
		return codec.AppendInt(dst, t.Failed)
	})
}

// AppendStream writes a stream, without Known.
func AppendStream(b []byte, t *Stream) []byte {
	b = codec.AppendUint(b, t.OK)
	b = codec.AppendInt(b, t.First)
	b = codec.AppendInt(b, t.Last)
	return record.AppendGaps(b, t.Gaps)
}

// ReadPartStreams reads the output of AppendPartStreams: at most record.MaxParts.
func ReadPartStreams(r *codec.Reader) []PartStream {
	parts := codec.ReadList(r, 6, func(t *PartStream) {
		ReadStream(r, &t.Stream)
		t.Tried, t.Failed = r.Int(), r.Int()
	})
	if len(parts) > record.MaxParts {
		r.Fail("%d shards or parts", len(parts))
		return nil
	}
	return parts
}

// ReadStreams reads a list of streams, those of the probes of shards: at most record.MaxShards.
func ReadStreams(r *codec.Reader) []Stream {
	streams := codec.ReadList(r, 4, func(t *Stream) { ReadStream(r, t) })
	if len(streams) > record.MaxShards {
		r.Fail("probes of %d shards", len(streams))
		return nil
	}
	return streams
}

// ReadStream reads the output of AppendStream.
func ReadStream(r *codec.Reader, t *Stream) {
	t.OK = r.Uint()
	t.First = r.Int()
	t.Last = r.Int()
	t.Known = -1
	t.Gaps = record.ReadGaps(r)
}

package record

func appendPartStreams(dst []byte, parts []partStream) []byte {
	return appendList(dst, parts, func(dst []byte, t *partStream) []byte {
		dst = appendStream(dst, &t.stream)
		dst = appendInt(dst, t.tried)
		return appendInt(dst, t.failed)
	})
}

func appendStream(b []byte, t *stream) []byte {
	b = appendUint(b, t.ok)
	b = appendInt(b, t.first)
	b = appendInt(b, t.last)
	return appendGaps(b, t.gaps)
}

func (r *reader) partStreams() []partStream {
	parts := readList(r, 6, func(t *partStream) {
		r.stream(&t.stream)
		t.tried, t.failed = r.int(), r.int()
	})
	if len(parts) > maxParts {
		r.fail("%d shards or parts", len(parts))
		return nil
	}
	return parts
}

// streams reads those of the probes of shards.
func (r *reader) streams() []stream {
	streams := readList(r, 4, r.stream)
	if len(streams) > MaxShards {
		r.fail("probes of %d shards", len(streams))
		return nil
	}
	return streams
}

func (r *reader) stream(t *stream) {
	t.ok, t.first, t.last, t.known, t.gaps = r.uint(), r.int(), r.int(), -1, r.gaps()
}

package record

func appendPartStreams(dst []byte, parts []partStream) []byte {
	dst = appendUint(dst, uint64(len(parts)))
	for i := range parts {
		dst = appendStream(dst, &parts[i].stream)
		dst = appendInt(dst, parts[i].tried)
		dst = appendInt(dst, parts[i].failed)
	}
	return dst
}

func appendStream(b []byte, t *stream) []byte {
	b = appendUint(b, t.ok)
	b = appendInt(b, t.first)
	b = appendInt(b, t.last)
	return appendGaps(b, t.gaps)
}

func (r *reader) partStreams() []partStream {
	n := r.count(6)
	if n > maxParts {
		r.fail("%d shards or parts", n)
		return nil
	}
	if n == 0 {
		return nil
	}
	parts := make([]partStream, n)
	for i := range parts {
		r.stream(&parts[i].stream)
		parts[i].tried, parts[i].failed = r.int(), r.int()
	}
	return parts
}

func (r *reader) stream(t *stream) {
	t.ok, t.first, t.last, t.gaps = r.uint(), r.int(), r.int(), r.gaps()
}

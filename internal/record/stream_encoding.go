package record

func appendShardStreams(dst []byte, shards []shardStream) []byte {
	dst = appendUint(dst, uint64(len(shards)))
	for i := range shards {
		dst = appendStream(dst, &shards[i].stream)
		dst = appendInt(dst, shards[i].tried)
		dst = appendInt(dst, shards[i].failed)
	}
	return dst
}

func appendStream(b []byte, t *stream) []byte {
	b = appendUint(b, t.ok)
	b = appendInt(b, t.first)
	b = appendInt(b, t.last)
	return appendGaps(b, t.gaps)
}

func (r *reader) shardStreams() []shardStream {
	n := r.count(6)
	if n > MaxShards {
		r.fail("%d shards", n)
		return nil
	}
	if n == 0 {
		return nil
	}
	shards := make([]shardStream, n)
	for i := range shards {
		r.stream(&shards[i].stream)
		shards[i].tried, shards[i].failed = r.int(), r.int()
	}
	return shards
}

func (r *reader) stream(t *stream) {
	t.ok, t.first, t.last, t.gaps = r.uint(), r.int(), r.int(), r.gaps()
}

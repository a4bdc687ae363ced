package faulttest

// Reply is an error reply of a server.
type Reply string

// Error is what the server replied.
func (r Reply) Error() string { return string(r) }

func (Reply) RedisError() {}

package adapter

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
)

// Await listens on a socket for an adapter that somebody else starts, and waits for its hello. What
// an earlier agent has left there is replaced. Errors are *Failure, ctx's, and about the socket.
func Await(ctx context.Context, path string, o Options) (*Session, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	conn, err := accept(ctx, listener)
	if err != nil {
		return nil, err
	}
	s, err := Open(ctx, conn, o)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return s, nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// oneCipher is what all tools use with TLS: by themselves, OpenSSL's prefer AES-256 and Go's
// AES-128.
const oneCipher = "tls-ciphersuites TLS_AES_128_GCM_SHA256"

// host is the testing.TB of redistest's servers, without a test.
type host struct {
	testing.TB
	failed   error
	cleanups []func()
}

func (h *host) Helper() {}
func (h *host) Name() string {
	return "bench"
}

func (h *host) Failed() bool {
	return h.failed != nil
}

func (h *host) Cleanup(f func()) {
	h.cleanups = append(h.cleanups, f)
}

func (h *host) Logf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func (h *host) Fatal(args ...any) {
	h.failed = errors.New(strings.TrimSpace(fmt.Sprintln(args...)))
	runtime.Goexit()
}

func (h *host) Fatalf(format string, args ...any) {
	h.Fatal(fmt.Sprintf(format, args...))
}

func (h *host) TempDir() string {
	dir, err := os.MkdirTemp("", "bench-redis-")
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = os.RemoveAll(dir) }) // a temporary folder that stays is no reason to fail
	return dir
}

// end stops what was started.
func (h *host) end() {
	for len(h.cleanups) > 0 {
		last := h.cleanups[len(h.cleanups)-1]
		h.cleanups = h.cleanups[:len(h.cleanups)-1]
		done := make(chan struct{})
		go func() { // a cleanup that fails ends its goroutine
			defer close(done)
			last()
		}()
		<-done
	}
}

// deployment is what a case loads: a server on loopback, or a cluster of them. Each has one thread,
// no persistence, and its default configuration otherwise.
type deployment struct {
	host    *host
	servers []*redistest.Server
	pids    []int
	client  goredis.UniversalClient
}

// deploy starts the servers of a case on their cores and tells the case where they are.
func deploy(ctx context.Context, w *work, on cores) (*deployment, error) {
	d := &deployment{host: &host{}}
	err := onCore(on.servers[0], func() error {
		o := redistest.Options{}
		w.folder = d.host.TempDir()
		if w.secured {
			w.tls = redistest.NewAuthority(d.host)
			o.TLS, o.Config = w.tls, []string{oneCipher}
		}
		if w.shards == 0 {
			d.servers = []*redistest.Server{redistest.NewServer(d.host, o)}
			d.client = d.servers[0].Client()
			return nil
		}
		cluster := redistest.NewCluster(d.host, w.shards, 0, redistest.ClusterOptions{
			Options:     o,
			NodeTimeout: 15 * time.Second,
		})
		d.servers = cluster.Servers()
		d.client = goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: cluster.Addresses()})
		return nil
	})
	if d.host.failed != nil {
		err = d.host.failed
	}
	if err == nil {
		w.address, w.port = d.servers[0].Address(), d.servers[0].Port
		err = d.place(ctx, on)
	}
	if err != nil {
		d.stop()
		return nil, err
	}
	return d, nil
}

// place moves servers to cores of their own, if there are enough.
func (d *deployment) place(ctx context.Context, on cores) error {
	for i, s := range d.servers {
		info, err := info(ctx, s)
		if err != nil {
			return err
		}
		pid, err := strconv.Atoi(info["process_id"])
		if err != nil {
			return fmt.Errorf("process_id: %w", err)
		}
		d.pids = append(d.pids, pid)
		if err := moveProcess(pid, on.servers[i%len(on.servers)]); err != nil {
			return err
		}
	}
	return nil
}

// stop ends the servers.
func (d *deployment) stop() {
	if d.client != nil {
		_ = d.client.Close() // nothing is left to be sent
	}
	d.host.end()
}

// fill empties the servers and sets all keys, numbered from first, under the names that format
// gives them.
func (d *deployment) fill(ctx context.Context, format string, first, size int) error {
	for _, s := range d.servers {
		if err := s.Client().FlushAll(ctx).Err(); err != nil {
			return err
		}
	}
	value := strings.Repeat("x", size)
	const perBatch = 1000
	for from := 0; from < keys; from += perBatch {
		batch := d.client.Pipeline()
		for k := from; k < min(from+perBatch, keys); k++ {
			batch.Set(ctx, fmt.Sprintf(format, first+k), value, 0)
		}
		if _, err := batch.Exec(ctx); err != nil {
			return err
		}
	}
	n, err := d.client.DBSize(ctx).Result()
	if err == nil && n != keys {
		err = fmt.Errorf("%d keys exist, not %d", n, keys)
	}
	return err
}

// misses is the number of reads of missing keys since the servers' start.
func (d *deployment) misses(ctx context.Context) (int64, error) {
	var sum int64
	for _, s := range d.servers {
		info, err := info(ctx, s)
		if err != nil {
			return 0, err
		}
		n, err := strconv.ParseInt(info["keyspace_misses"], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("keyspace_misses: %w", err)
		}
		sum += n
	}
	return sum, nil
}

func info(ctx context.Context, s *redistest.Server) (redis.Info, error) {
	text, err := s.Client().Info(ctx).Result()
	return redis.ParseInfo(text), err
}

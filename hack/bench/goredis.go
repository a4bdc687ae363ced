package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/redquake/redquake/internal/record/histogram"
)

const goRedisCommand = "go-redis"

// goRedis loads Redis as most Go services do: go-redis, one goroutine per connection, a histogram
// per goroutine.
func goRedis(own string) tool {
	return tool{
		name:    nameGoRedis,
		can:     func(w *work) bool { return w.details },
		keys:    "rq:%d",
		version: moduleVersion("github.com/redis/go-redis/v9"),
		args: func(w *work) []string {
			return []string{
				own, goRedisCommand, "-address", w.address, "-requests", strconv.Itoa(w.requests),
				"-connections", strconv.Itoa(w.connections), "-pipeline", strconv.Itoa(w.pipeline),
				"-get=" + strconv.FormatBool(w.get), "-value-bytes", strconv.Itoa(w.valueBytes),
			}
		},
		read: func(_ *work, stdout []byte) (figures, error) {
			var out goRedisResult
			err := json.Unmarshal(stdout, &out)
			return figures{
				requests:  out.Requests,
				perSecond: out.PerSecond,
				p50:       out.P50,
				p99:       out.P99,
			}, err
		},
	}
}

type goRedisResult struct {
	Requests            int
	PerSecond, P50, P99 float64
}

func runGoRedis(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet(goRedisCommand, flag.ContinueOnError)
	address := flags.String("address", "", "host:port")
	requests := flags.Int("requests", 0, "over all connections")
	connections := flags.Int("connections", 1, "a goroutine each")
	pipeline := flags.Int("pipeline", 1, "requests per batch")
	size := flags.Int("value-bytes", usualBytes, "of each value")
	get := flags.Bool("get", false, "GET instead of SET")
	if err := flags.Parse(args); err != nil {
		return err
	}
	client := redis.NewClient(&redis.Options{Addr: *address, PoolSize: *connections})
	defer client.Close()
	caller := goRedisCaller{
		client:   client,
		pipeline: *pipeline,
		get:      *get,
		value:    strings.Repeat("x", *size),
	}
	var wait sync.WaitGroup
	var mu sync.Mutex
	var all histogram.Distribution
	var failed error
	began := time.Now()
	for i := range *connections {
		wait.Go(func() {
			own, err := caller.run(ctx, uint64(i), *requests / *connections / *pipeline)
			mu.Lock()
			defer mu.Unlock()
			all.Add(own.AppendTo(nil))
			if err != nil {
				failed = err
			}
		})
	}
	wait.Wait()
	if failed != nil {
		return fmt.Errorf("go-redis: %w", failed)
	}
	micros := func(q float64) float64 { return float64(all.Quantile(q)) / float64(time.Microsecond) }
	return json.NewEncoder(os.Stdout).Encode(goRedisResult{
		Requests:  int(all.Count()),
		PerSecond: float64(all.Count()) / time.Since(began).Seconds(),
		P50:       micros(0.5),
		P99:       micros(0.99),
	})
}

type goRedisCaller struct {
	client   *redis.Client
	pipeline int
	get      bool
	value    string
}

// run sends the batches one after another and returns their latencies, up to the first error.
func (c goRedisCaller) run(
	ctx context.Context, seed uint64, batches int,
) (*histogram.Histogram, error) {
	rng := rand.New(rand.NewPCG(1, seed))
	latencies := &histogram.Histogram{}
	for range batches {
		sent := time.Now()
		if err := c.batch(ctx, rng); err != nil {
			return latencies, err
		}
		latencies.RecordN(int64(time.Since(sent)), uint32(c.pipeline))
	}
	return latencies, nil
}

func (c goRedisCaller) batch(ctx context.Context, rng *rand.Rand) error {
	if c.pipeline == 1 {
		return c.request(ctx, c.client, rng)
	}
	_, err := c.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for range c.pipeline {
			_ = c.request(ctx, p, rng) // queued: errors come with the batch
		}
		return nil
	})
	return err
}

func (c goRedisCaller) request(ctx context.Context, to redis.Cmdable, rng *rand.Rand) error {
	key := "rq:" + strconv.Itoa(rng.IntN(keys))
	if c.get {
		return to.Get(ctx, key).Err()
	}
	return to.Set(ctx, key, c.value, 0).Err()
}

// moduleVersion is the version of a module that this program was built with.
func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "unknown"
}

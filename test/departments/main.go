// Command departments is a small HTTP API that serves the same rows from several backends, so that nothing but the
// backend differs between two requests.
// The gallery loads it (docs/gallery).
//
//	GET  /departments    the rows, as JSON
//	POST /departments    replaces one of the rows
//	GET  /healthz        200 once every backend has its rows
//
// The header Backend names the backend, the header Rows which set of rows: one with so many.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// sizes are the sets of rows.
var sizes = []int{10, 1000}

// connections is how many connections each backend may have.
const connections = 64

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "departments:", err)
		os.Exit(2)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("departments", flag.ContinueOnError)
	listen := flags.String("listen", ":8080", "address to listen on")
	backends := map[string]backend{}
	flags.Func("redis", "a Redis as a backend, NAME=HOST:PORT; repeatable", func(text string) error {
		name, address, ok := strings.Cut(text, "=")
		if !ok {
			return errors.New("want NAME=HOST:PORT")
		}
		backends[name] = &redisRows{redis.NewClient(&redis.Options{Addr: address, PoolSize: connections})}
		return nil
	})
	cache := flags.String("cache", "", "HOST:PORT of a Redis that caches the rows of MariaDB for a second: backend cached")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if dsn := os.Getenv("MARIADB_DSN"); dsn != "" {
		rows, err := openMariaDB(dsn)
		if err != nil {
			return fmt.Errorf("MARIADB_DSN: %w", err)
		}
		backends["mariadb"] = rows
		if *cache != "" {
			backends["cached"] = &cachedRows{rows, redis.NewClient(&redis.Options{Addr: *cache, PoolSize: connections})}
		}
	}
	if len(backends) == 0 {
		return errors.New("no backend: set --redis NAME=HOST:PORT, or the variable MARIADB_DSN")
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	api := newAPI(backends)
	go api.seed(ctx)
	server := &http.Server{
		Addr:              *listen,
		Handler:           api,
		ReadHeaderTimeout: 10 * time.Second,
	}
	go func() {
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		_ = server.Shutdown(last)
	}()
	slog.Info("listening", "address", *listen)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

//go:build integration

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/redquake/redquake/internal/testing/databasetest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

const cacheAsideYAML = `
apiVersion: redquake.dev/v1alpha1
kind: RedisLoadTest
metadata: {name: articles}
spec:
  target: {service: {name: redis}}
  load: {users: 4, requests: 400}
  workload:
    cacheAside:
      database: {driver: postgres, dsnSecretRef: {name: shop, key: dsn}, query: "SELECT title, stock FROM articles WHERE id = $1"}
    keyspace: {keys: 100}
`

// A database behind a cache, from a file and without a cluster.
func TestLoadCacheAside(t *testing.T) {
	t.Parallel()
	database, redis := databasetest.Postgres(t), redistest.Start(t)
	folder := t.TempDir()
	file, dsn := filepath.Join(folder, "test.yaml"), filepath.Join(folder, "dsn")
	for name, text := range map[string]string{file: cacheAsideYAML, dsn: database.DSN + "\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, out, stderr := runCommand(t, nil, "load", "-f", file, "--address", redis.Address(), "--dsn-file", dsn, "-o",
		"json")
	r := judged(t, code, out, stderr)
	figures := map[string]uint64{}
	for _, f := range r.Workload {
		if f.Count != nil {
			figures[f.Name] = *f.Count
		}
	}
	// Two users can miss a key at the same time.
	if r.Total.OK != 400 || figures["hits"]+figures["misses"] != 400 || figures["misses"] < 60 || figures["misses"] > 150 {
		t.Errorf("%d of 400 reads succeeded, %v", r.Total.OK, figures)
	}
}

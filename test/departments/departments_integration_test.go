//go:build integration

package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/redquake/redquake/internal/testing/databasetest"
	"github.com/redquake/redquake/internal/testing/redistest"
)

// Every backend serves the same rows, before and after one is replaced.
func TestBackends(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Address()})
	rows, err := openMariaDB(databasetest.MariaDB(t).DSN)
	if err != nil {
		t.Fatal(err)
	}
	api := newAPI(map[string]backend{"redis": &redisRows{client}, "mariadb": rows, "cached": &cachedRows{rows, client}})
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	ask := func(method, path, backend, rows string) (int, []byte) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Backend", backend)
		request.Header.Set("Rows", rows)
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var body bytes.Buffer
		if _, err := body.ReadFrom(response.Body); err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, body.Bytes()
	}

	if status, _ := ask("GET", "/healthz", "", ""); status != http.StatusServiceUnavailable {
		t.Errorf("/healthz is %d before there are rows", status)
	}
	api.seed(t.Context())
	api.seed(t.Context()) // a second pod
	if status, _ := ask("GET", "/healthz", "", ""); status != http.StatusOK {
		t.Errorf("/healthz is %d with all rows", status)
	}
	for _, backend := range []string{"redis", "mariadb", "cached"} {
		for _, n := range sizes {
			size := map[int]string{10: "10", 1000: "1000"}[n]
			want := make([]department, n)
			for id := range want {
				want[id] = departmentOf(id)
			}
			for _, method := range []string{"GET", "POST", "GET"} {
				status, body := ask(method, "/departments", backend, size)
				if method == "POST" {
					if status != http.StatusNoContent {
						t.Errorf("%s, %s rows: POST is %d %s", backend, size, status, body)
					}
					continue
				}
				var got []department
				if err := json.Unmarshal(body, &got); err != nil || status != http.StatusOK {
					t.Fatalf("%s, %s rows: %d %v %s", backend, size, status, err, body)
				}
				slices.SortFunc(got, func(a, b department) int { return a.ID - b.ID })
				if !slices.Equal(got, want) {
					t.Errorf("%s, %s rows: %v", backend, size, got)
				}
			}
		}
	}
	for _, asked := range [][2]string{{"", "10"}, {"postgres", "10"}, {"redis", "11"}, {"redis", "many"}} {
		if status, _ := ask("GET", "/departments", asked[0], asked[1]); status != http.StatusBadRequest {
			t.Errorf("backend %q, rows %q: %d, want 400", asked[0], asked[1], status)
		}
	}
}

// A backend that is away is the error of the request.
func TestBackendIsAway(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	api := newAPI(map[string]backend{
		"redis": &redisRows{redis.NewClient(&redis.Options{Addr: server.Address(), MaxRetries: -1})},
	})
	api.seed(t.Context())
	server.Kill()
	for _, method := range []string{"GET", "POST"} {
		request := httptest.NewRequestWithContext(t.Context(), method, "/departments", nil)
		request.Header.Set("Backend", "redis")
		request.Header.Set("Rows", "10")
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, request)
		if answer.Code != http.StatusBadGateway {
			t.Errorf("%s: %d %s, want 502", method, answer.Code, answer.Body)
		}
	}
}

package prometheus

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redquake/redquake/internal/egress"
)

const hour = time.Hour

// query answers a query by a server that behaves as given; without an answer by the one that s names.
func query(t *testing.T, c *Client, s Server, timeout time.Duration, answer http.HandlerFunc) (Range, error) {
	t.Helper()
	if answer != nil {
		server := httptest.NewServer(answer)
		t.Cleanup(server.Close)
		s.URL = server.URL + s.URL
	}
	return c.Query(t.Context(), s, "up", timeout)
}

func local() *Client { return &Client{Hosts: egress.Hosts{"127.0.0.1"}} }

func returns(data string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"status":"success","data":%s}`, data)
	}
}

// Results are reduced to their least and greatest number; what is not a number is an error.
func TestResults(t *testing.T) {
	t.Parallel()
	sample := func(values ...string) string {
		var all []string
		for i, v := range values {
			all = append(all, fmt.Sprintf(`{"metric":{"i":"%d"},"value":[1,"%s"]}`, i, v))
		}
		return `{"resultType":"vector","result":[` + strings.Join(all, ",") + `]}`
	}
	tests := map[string]struct{ data, want, fails string }{
		"scalar":       {data: `{"resultType":"scalar","result":[1,"0.25"]}`, want: "{0.25 0.25}"},
		"one sample":   {data: sample("3"), want: "{3 3}"},
		"samples":      {data: sample("3", "-1", "7"), want: "{-1 7}"},
		"infinite":     {data: sample("+Inf"), want: "{+Inf +Inf}"},
		"no data":      {data: sample(), fails: "no data"},
		"NaN":          {data: sample("1", "NaN"), fails: "NaN"},
		"NaN alone":    {data: `{"resultType":"scalar","result":[1,"NaN"]}`, fails: "NaN"},
		"string":       {data: `{"resultType":"string","result":[1,"x"]}`, fails: "string"},
		"range":        {data: `{"resultType":"matrix","result":[]}`, fails: "matrix"},
		"no result":    {data: `null`, fails: "nothing"},
		"foreign text": {data: `"x"`, fails: ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := query(t, local(), Server{}, hour, returns(test.data))
			if test.want == "" && (err == nil || !strings.Contains(err.Error(), test.fails)) {
				t.Errorf("%v, %v; want an error with %q", got, err, test.fails)
			}
			if test.want != "" && (err != nil || fmt.Sprint(got) != test.want) {
				t.Errorf("%v, %v; want %s", got, err, test.want)
			}
		})
	}
}

// A server that streams for ever, is silent, redirects, refuses, or sends the login back costs little and shows
// nothing.
func TestHostileServers(t *testing.T) {
	t.Parallel()
	login := Server{Token: "s3cret-token"}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the redirect was followed, with %q", r.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	tests := map[string]struct {
		server  Server
		timeout time.Duration
		answer  http.HandlerFunc
		want    string
	}{
		"endless": {login, hour, func(w http.ResponseWriter, r *http.Request) {
			for chunk := []byte(strings.Repeat("x", 1<<16)); r.Context().Err() == nil; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, "longer than 1048576 bytes"},
		"endless headers": {login, hour, func(w http.ResponseWriter, _ *http.Request) {
			for i := range 2000 {
				w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 100))
			}
		}, "headers exceeded"},
		"silent": {login, 50 * time.Millisecond, func(_ http.ResponseWriter, r *http.Request) {
			_ = r.ParseForm() // only then the end of the connection is seen
			<-r.Context().Done()
		}, "no answer within 50ms"},
		"redirects": {login, hour, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}, "redirects"},
		"refuses": {login, hour, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"status":"error","errorType":"bad_data","error":"parse error"}`)
		}, "parse error"},
		"not a Prometheus": {login, hour, func(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) }, "404"},
		"sends the token back": {login, hour, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"status":"error","errorType":"bad_data","error":"%s"}`, r.Header.Get("Authorization"))
		}, "Bearer (redacted)"},
		"sends the password back": {
			Server{Username: "u", Password: "s3cret"},
			hour,
			func(w http.ResponseWriter, r *http.Request) {
				_, password, _ := r.BasicAuth()
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"status":"error","errorType":"bad_data","error":"%s %s"}`, r.Header.Get("Authorization"), password)
			},
			"Basic (redacted) (redacted)",
		},
		"sends the user name back": {
			Server{Username: "s3cret-user", Password: "s3cret"},
			hour,
			func(w http.ResponseWriter, r *http.Request) {
				user, _, _ := r.BasicAuth()
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"status":"error","errorType":"bad_data","error":"who is %s?"}`, user)
			},
			"who is (redacted)?",
		},
		"sends a piece of the token": {
			Server{Token: "abcdefghs3cretijklmn"},
			hour,
			func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"status":"error","errorType":"bad_data","error":"...%s..."}`, r.Header.Get("Authorization")[10:24])
			},
			"...(redacted)...",
		},
		"a number that is the token": {login, hour, func(w http.ResponseWriter, r *http.Request) {
			returns(`{"resultType":"scalar","result":[1,"`+r.Header.Get("Authorization")+`"]}`)(w, r)
		}, "(redacted)"},
		"not HTTP, but the token": {login, hour, func(w http.ResponseWriter, r *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				fmt.Fprintf(c, "%s\r\n\r\n", r.Header.Get("Authorization"))
				_ = c.Close()
			}
		}, "(redacted)"},
		"redirects to the token": {login, hour, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://"+r.Header.Get("Authorization")+"@:x%zz/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, "(redacted)"},
		"a login in the URL": {Server{URL: "http://s3cret-user:s3cret@127.0.0.1:1"}, hour, nil, "connection refused"},
		"a URL that is none": {Server{URL: "http://s3cret-user:s3cret@127.0.0.1:1/%zz"}, hour, nil, "the URL is invalid"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := query(t, local(), test.server, test.timeout, test.answer)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%v, want %q and no secret", err, test.want)
			}
		})
	}
}

// The request is Prometheus' own, below the URL's path, with the login.
func TestRequest(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	_, err := query(t, local(), Server{URL: "/prefix/", Username: "u", Password: "p"}, hour,
		func(w http.ResponseWriter, r *http.Request) {
			user, password, _ := r.BasicAuth()
			got <- fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.FormValue("query"), " ", r.FormValue("timeout"), " ", user, ":",
				password)
			returns(`{"resultType":"scalar","result":[1,"1"]}`)(w, r)
		})
	if want := "POST /prefix/api/v1/query up 1h0m0s u:p"; err != nil || <-got != want {
		t.Errorf("%v; want %s", err, want)
	}
}

// Requests go only to hosts that are named, and the error names both the host and the flag. Nothing is asked otherwise,
// nor without a list.
func TestHosts(t *testing.T) {
	t.Parallel()
	touched := func(http.ResponseWriter, *http.Request) { t.Error("the server was asked") }
	for name, hosts := range map[string]egress.Hosts{"not on the list": {"elsewhere"}, "no list": nil} {
		if _, err := query(t, &Client{Hosts: hosts}, Server{}, hour, touched); err == nil ||
			!strings.Contains(err.Error(), "--prometheus-hosts") || !strings.Contains(err.Error(), "host 127.0.0.1") {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := &Client{}
	for _, address := range []string{
		"http://169.254.169.254", "http://[fe80::1]", "http://0.0.0.0",
		"http://prometheus.monitoring.svc:9090",
	} {
		if err := c.Check(address); !errors.Is(err, egress.ErrForbidden) {
			t.Errorf("check of %s: %v", address, err)
		}
		if _, err := c.Query(context.Background(), Server{URL: address}, "up", hour); err == nil ||
			!strings.Contains(err.Error(), "--prometheus-hosts") {
			t.Errorf("%s: %v", address, err)
		}
	}
	if err := (&Client{Hosts: egress.Hosts{"*.svc"}}).Check("http://prometheus.monitoring.svc:9090"); err != nil {
		t.Error(err)
	}
}

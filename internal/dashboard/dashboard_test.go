package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/redquake/redquake/internal/report"
)

// stage is a cluster with a few objects, and readers.
type stage struct {
	mu       sync.Mutex
	objects  []Object
	revision Revision
	trouble  error         // of the API server
	made     atomic.Int32  // reports
	held     chan struct{} // a report waits until it is closed; nil = it does not
}

func newStage() *stage {
	var s stage
	for _, namespace := range []string{"shop", "bank"} {
		for _, resource := range resources {
			s.objects = append(s.objects, Object{
				Key:      Key{resource, namespace, "one"},
				Status:   "Running",
				Created:  time.Now(),
				Revision: "1",
				Figures:  []report.Fact{{Name: "p99", Value: "1.2ms"}},
			})
		}
	}
	s.revision = Revision{ID: "r1"}
	return &s
}

func (s *stage) Namespaces(context.Context) ([]string, error) { return []string{"bank", "shop"}, nil }

func (s *stage) Objects(_ context.Context, resource, namespace string, limit int) (list []Object, more int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.objects {
		if o.Resource == resource && (namespace == "" || namespace == o.Namespace) {
			list = append(list, o)
		}
	}
	n := min(len(list), limit)
	return list[:n], len(list) - n, nil
}

func (s *stage) Revision(_ context.Context, key Key) (Revision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.objects, func(o Object) bool { return o.Key == key }) {
		return Revision{}, ErrNotFound
	}
	return s.revision, nil
}

func (s *stage) set(r Revision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revision = r
}

func (s *stage) Report(ctx context.Context, key Key) (*report.Document, error) {
	s.made.Add(1)
	if s.held != nil {
		select {
		case <-s.held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if key.Name == "broken" {
		panic("a status without a time")
	}
	return &report.Document{
		Kind:      report.LoadTest,
		Namespace: key.Namespace,
		Name:      key.Name,
		State:     report.Running,
		Finding:   report.Text("it runs"),
		Figures:   []report.Figure{{Name: "requests", Label: "Requests"}},
	}, nil
}

// AuthenticateRequest knows users by tokens that are their names.
func (s *stage) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	if s.trouble != nil {
		return nil, false, s.trouble
	}
	name := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !slices.Contains([]string{"admin", "shopkeeper", "tester", "nobody"}, name) {
		return nil, false, errors.New("[invalid bearer token]")
	}
	return &authenticator.Response{User: &user.DefaultInfo{Name: name}}, true, nil
}

// Authorize permits an admin everything, a shopkeeper namespace shop, and a tester the load tests of shop.
func (s *stage) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetAPIGroup() != "redquake.dev" || !a.IsResourceRequest() ||
		!slices.Contains([]string{"get", "list"}, a.GetVerb()) {
		return authorizer.DecisionNoOpinion, "", nil
	}
	in := a.GetNamespace() == "shop"
	name := a.GetUser().GetName()
	if name == "admin" || in && name == "shopkeeper" || in && name == "tester" && a.GetResource() == LoadTests {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func (s *stage) handler(limits Limits) *Handler {
	return NewHandler(Config{
		Source:        s,
		Authenticator: s,
		Authorizer:    authorizer.AuthorizerFunc(s.Authorize),
		Log:           logr.Discard(),
		Limits:        limits,
	})
}

func get(h http.Handler, token, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Who has no token, or an invalid one, gets nothing; others get what they may read.
func TestAccess(t *testing.T) {
	t.Parallel()
	h := newStage().handler(Limits{})
	for _, tc := range []struct {
		token, path string
		code        int
		says        string
	}{
		{"", "/", http.StatusUnauthorized, "redquake dashboard"},
		{"", "/shop/redisloadtests/one", http.StatusUnauthorized, "bearer token"},
		{"", "/shop/redisloadtests/one/events", http.StatusUnauthorized, "bearer token"},
		{"", "/no/such/page/at/all", http.StatusUnauthorized, "bearer token"},
		{"stolen", "/", http.StatusUnauthorized, "does not accept"},
		{"admin", "/", http.StatusOK, "/bank/redisfaults/one"},
		{"admin", "/shop/", http.StatusOK, "/shop/redisexperiments/one"},
		{"admin", "/bank/redisexperiments/one", http.StatusOK, "it runs"},
		{"admin", "/shop/redisloadtests/other", http.StatusNotFound, "There is no redisloadtest other in namespace shop"},
		{"admin", "/shop/secrets/one", http.StatusNotFound, "no such page"},
		{"admin", "/shop/redisloadtests/one?form=exe", http.StatusBadRequest, "no form of a report"},
		{"admin", "/no/such/page/at/all", http.StatusNotFound, "no such page"},
		{"shopkeeper", "/", http.StatusOK, "/shop/redisloadtests/one"},
		{"shopkeeper", "/shop/redisfaults/one", http.StatusOK, "it runs"},
		{
			"shopkeeper", "/bank/redisfaults/one", http.StatusForbidden,
			"get redisfaults.redquake.dev one in namespace bank, which user shopkeeper does not have",
		},
		{"shopkeeper", "/bank/redisfaults/nonexistent", http.StatusForbidden, "permission"},
		{"shopkeeper", "/bank/redisfaults/one/events", http.StatusForbidden, "permission"},
		{"shopkeeper", "/bank/", http.StatusForbidden, "list redisloadtests.redquake.dev in namespace bank"},
		{"shopkeeper", "/bank/redisloadtests/one?form=csv", http.StatusForbidden, "permission"},
		{"tester", "/shop/redisloadtests/one", http.StatusForbidden, "list redisfaults.redquake.dev in namespace shop"},
		{"tester", "/shop/", http.StatusOK, "do not have the permission to list redisfaults"},
		{"nobody", "/", http.StatusForbidden, "list redisloadtests.redquake.dev in all namespaces"},
		{"nobody", "/events", http.StatusForbidden, "permission"},
	} {
		w := get(h, tc.token, tc.path)
		if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.says) {
			t.Errorf("%q reads %s: %d %.200s; want %d with %q", tc.token, tc.path, w.Code, w.Body, tc.code, tc.says)
		}
		if policy := w.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") ||
			!strings.Contains(policy, "connect-src 'self'") || strings.Contains(policy, "script-src 'unsafe-inline'") {
			t.Errorf("%s has the policy %q", tc.path, policy)
		}
		if tc.code == http.StatusUnauthorized && !strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Bearer") {
			t.Errorf("%s: no WWW-Authenticate", tc.path)
		}
		if body := w.Body.String(); tc.token != "admin" && tc.code == http.StatusOK && strings.Contains(body, "bank") {
			t.Errorf("%s shows %s the other namespace: %s", tc.path, tc.token, body)
		}
	}
}

// Nothing but reading is possible.
func TestMethods(t *testing.T) {
	t.Parallel()
	h := newStage().handler(Limits{})
	for _, method := range []string{
		http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions, http.MethodConnect, http.MethodTrace,
	} {
		for _, path := range []string{"/", "/shop/redisloadtests/one"} {
			r := httptest.NewRequest(method, path, nil)
			r.Header.Set("Authorization", "Bearer admin")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d, Allow %q", method, path, w.Code, w.Header().Get("Allow"))
			}
		}
	}
}

// An API server that does not answer is no refusal: a reader is not sent away for good.
func TestTroubleOfTheAPIServer(t *testing.T) {
	t.Parallel()
	s := newStage()
	h := s.handler(Limits{})
	for _, trouble := range []error{
		context.DeadlineExceeded, apierrors.NewServiceUnavailable("starting"),
		fmt.Errorf("review: %w", apierrors.NewForbidden(v("tokenreviews"), "", errors.New("no"))),
	} {
		s.trouble = trouble
		if w := get(h, "admin", "/"); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("%v: %d %s", trouble, w.Code, w.Body)
		}
	}
}

// Every form is a file.
func TestForms(t *testing.T) {
	t.Parallel()
	h := newStage().handler(Limits{})
	for form, begins := range map[string]string{
		"html":     "<!doctype html>",
		"markdown": "",
		"json":     "{",
		"junit":    "<?xml",
		"csv":      "kind,",
		"text":     "",
	} {
		w := get(h, "admin", "/shop/redisloadtests/one?form="+form)
		if w.Code != http.StatusOK || !strings.HasPrefix(w.Body.String(), begins) ||
			!strings.Contains(w.Header().Get("Content-Disposition"), "attachment; filename=shop-one.") {
			t.Errorf("%s: %d %v %.100s", form, w.Code, w.Header(), w.Body)
		}
		if live := strings.Contains(w.Body.String(), "EventSource"); live {
			t.Errorf("%s follows a server", form)
		}
	}
	if w := get(h, "admin", "/shop/redisloadtests/one"); !strings.Contains(w.Body.String(), "EventSource") ||
		!strings.Contains(w.Body.String(), `data-revision="r1"`) {
		t.Errorf("the page does not follow its object")
	}
}

// A page is made once for many readers, again after a change, and at most as often as the limit says.
func TestPagesAreShared(t *testing.T) {
	t.Parallel()
	s := newStage()
	s.held = make(chan struct{})
	h := s.handler(Limits{Every: time.Hour, Waiting: 20})
	var readers sync.WaitGroup
	codes := make(chan int, 30)
	for range 30 {
		readers.Go(func() { codes <- get(h, "admin", "/shop/redisloadtests/one").Code })
	}
	// 20 wait, the others are sent away at once.
	for range 10 {
		if code := <-codes; code != http.StatusServiceUnavailable {
			t.Errorf("%d before the page was made", code)
		}
	}
	close(s.held)
	readers.Wait()
	for range 20 {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("%d", code)
		}
	}
	s.set(Revision{ID: "r2"})
	if w := get(h, "admin", "/shop/redisloadtests/one"); !strings.Contains(w.Body.String(), `data-revision="r1"`) {
		t.Error("the page was made again within the limit")
	}
	if n := s.made.Load(); n != 1 {
		t.Errorf("%d reports were made", n)
	}
	quick := s.handler(Limits{Every: time.Nanosecond})
	for _, id := range []string{"r3", "r4"} {
		s.set(Revision{ID: id})
		deadline := time.Now().Add(2 * time.Minute)
		for !strings.Contains(get(quick, "admin", "/shop/redisloadtests/one").Body.String(), `data-revision="`+id+`"`) {
			if time.Now().After(deadline) {
				t.Fatalf("there is no page at revision %s", id)
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// What is kept for the next reader is bounded.
func TestKeptPagesAreBounded(t *testing.T) {
	t.Parallel()
	s := newStage()
	for i := range 50 {
		s.objects = append(s.objects, Object{Key: Key{LoadTests, "shop", fmt.Sprint("t", i)}})
	}
	h := s.handler(Limits{Cached: 200 << 10})
	for i := range 50 {
		if w := get(h, "admin", fmt.Sprint("/shop/redisloadtests/t", i)); w.Code != http.StatusOK {
			t.Fatalf("%d", w.Code)
		}
	}
	total := 0
	for _, page := range h.pages.kept {
		total += len(page.body)
	}
	if total > 200<<10 || len(h.pages.kept) < 2 {
		t.Errorf("%d bytes of %d pages are kept", total, len(h.pages.kept))
	}
}

// A report that cannot be made does not end the manager.
func TestPanic(t *testing.T) {
	t.Parallel()
	s := newStage()
	s.objects = append(s.objects, Object{Key: Key{LoadTests, "shop", "broken"}})
	h := s.handler(Limits{})
	if w := get(h, "admin", "/shop/redisloadtests/broken"); w.Code != http.StatusInternalServerError ||
		!strings.Contains(w.Body.String(), "a status without a time") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := get(h, "admin", "/shop/redisloadtests/one"); w.Code != http.StatusOK {
		t.Errorf("the next page: %d", w.Code)
	}
}

//go:build integration

package dashboardserver_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/controllers/dashboardserver"
	"github.com/redquake/redquake/internal/testing/await"
	"github.com/redquake/redquake/internal/testing/browser"
	"github.com/redquake/redquake/internal/testing/cluster"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// pages are those of an operator's dashboard.
type pages struct {
	place  *operatortest.Place
	server string // its URL
	client *http.Client
}

// withDashboard makes the operators of a place have a dashboard. The function that it returns waits until it is served.
func withDashboard(p *operatortest.Place) func() *pages {
	listening := make(chan net.Addr, 1)
	p.Dashboard = &dashboardserver.Server{
		Address:   "127.0.0.1:0",
		Secure:    true,
		Log:       logr.Discard(),
		Listening: func(a net.Addr) { listening <- a },
	}
	return func() *pages {
		p.T.Helper()
		a := await.Chan(p.T, "the dashboard is served", listening)
		// its certificate is its own
		return &pages{
			p,
			"https://" + a.String(),
			&http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}},
		}
	}
}

// reader creates a ServiceAccount, with the viewers' roles of the installation in the place's namespace, and returns a
// token of it.
func reader(p *operatortest.Place, name string, views bool) string {
	p.T.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Create(account)
	if views {
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, kind := range []string{"redisloadtest", "redisfault", "redisexperiment"} {
			path, err := cluster.Path("config/rbac/" + kind + "_viewer_role.yaml")
			if err != nil {
				p.T.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				p.T.Fatal(err)
			}
			var viewer rbacv1.ClusterRole
			if err := yaml.Unmarshal(text, &viewer); err != nil || len(viewer.Rules) == 0 {
				p.T.Fatalf("%s: %v", path, err)
			}
			role.Rules = append(role.Rules, viewer.Rules...)
		}
		p.Create(role)
		p.Create(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: p.Namespace}},
		})
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(3600))}}
	if err := p.Client.SubResource("token").Create(context.Background(), account, request); err != nil {
		p.T.Fatalf("request a token: %v", err)
	}
	return request.Status.Token
}

func (d *pages) get(method, path, token string) (int, string) {
	d.place.T.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, d.server+path, nil)
	if err != nil {
		d.place.T.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := d.client.Do(r)
	if err != nil {
		d.place.T.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		d.place.T.Fatalf("%s %s: %v", method, path, err)
	}
	return response.StatusCode, string(body)
}

// as is an address at which a browser, which has no token, reads as somebody.
func (d *pages) as(token string) string {
	target, err := url.Parse(d.server)
	if err != nil {
		d.place.T.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Transport: d.client.Transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Header.Set("Authorization", "Bearer "+token)
	}}
	server := httptest.NewServer(proxy)
	d.place.T.Cleanup(server.Close)
	return server.URL
}

// The API server decides who reads what: real TokenReviews, SubjectAccessReviews and roles.
func TestReadersOfTheDashboard(t *testing.T) {
	t.Parallel()
	p := operatortest.NewPlace(t)
	started := withDashboard(p)
	operatortest.StartOperator(p, operatortest.Spy{})
	d := started()
	suspended := operatortest.NewLoadTest("run", "127.0.0.1:6379", func(test *v1alpha1.RedisLoadTest) {
		test.Spec.Suspend = true
	})
	p.Create(suspended)
	viewer, stranger := reader(p, "viewer", true), reader(p, "stranger", false)
	page := "/" + p.Namespace + "/redisloadtests/run"
	p.Until("the viewer may read", time.Minute, func() bool {
		code, _ := d.get(http.MethodGet, page,
			viewer)
		return code == http.StatusOK
	}, func() string {
		code, body := d.get(http.MethodGet, page, viewer)
		return fmt.Sprint(code, " ", body)
	})
	for _, tc := range []struct {
		method, path, token string
		code                int
		says                string
	}{
		{http.MethodGet, page, "", http.StatusUnauthorized, "redquake dashboard"},
		{http.MethodGet, page, "invalid", http.StatusUnauthorized, "does not accept"},
		{http.MethodGet, page, viewer[:len(viewer)-4] + "AAAA", http.StatusUnauthorized, "does not accept"},
		{
			http.MethodGet, page, stranger, http.StatusForbidden,
			"get redisloadtests.redquake.dev run in namespace " + p.Namespace + ", which user system:serviceaccount:" +
				p.Namespace + ":stranger",
		},
		{http.MethodGet, page + "/events", stranger, http.StatusForbidden, "permission"},
		{http.MethodGet, "/", stranger, http.StatusForbidden, "permission"},
		{http.MethodGet, "/", viewer, http.StatusOK, page},
		{http.MethodGet, "/" + p.Namespace + "/", viewer, http.StatusOK, page},
		{http.MethodGet, "/default/", viewer, http.StatusForbidden, "in namespace default"},
		{http.MethodGet, "/default/redisloadtests/run", viewer, http.StatusForbidden, "in namespace default"},
		{
			http.MethodGet, "/" + p.Namespace + "/redisloadtests/other", viewer, http.StatusNotFound,
			"There is no redisloadtest other",
		},
		{http.MethodGet, page + "?form=json", viewer, http.StatusOK, `"kind": "LoadTest"`},
		{http.MethodPost, page, viewer, http.StatusMethodNotAllowed, "only reads"},
		{http.MethodDelete, page, viewer, http.StatusMethodNotAllowed, "only reads"},
	} {
		if code, body := d.get(tc.method, tc.path, tc.token); code != tc.code || !strings.Contains(body, tc.says) {
			t.Errorf("%s %s: %d %.300s; want %d with %q", tc.method, tc.path, code, body, tc.code, tc.says)
		}
	}
}

// points is how many steps of the record a page draws; 0 = it has no curves yet.
const points = `(m => m ? JSON.parse(m.textContent).n : 0)(document.getElementById('meta'))`

// A page in a real browser follows a real run: the line grows, the fault's mark appears, what the reader has opened
// stays open; at the end it is the report, and it can be saved.
func TestLivePage(t *testing.T) {
	t.Parallel()
	p := operatortest.NewPlace(t)
	redis := operatortest.StartRedis(p)
	operatortest.StartKubelet(p, nil)
	started := withDashboard(p)
	operatortest.StartOperator(p, operatortest.Spy{})
	d, token := started(), reader(p, "viewer", true)
	// the test ends it: a browser on a busy machine takes longer than any run that is worth waiting for
	lasts := 10 * time.Minute
	if os.Getenv("REDQUAKE_PICTURES_OUT") != "" {
		lasts = 16 * time.Second // as the pictures show it
	}
	p.Create(operatortest.NewLoadTest("run", redis.Address(), func(test *v1alpha1.RedisLoadTest) {
		operatortest.WithTolerance(test)
		test.Spec.Load = v1alpha1.LoadShape{Rate: new(int32(200)), Duration: operatortest.Length(lasts)}
	}))
	p.Create(operatortest.NewFault("kill", "run", v1alpha1.FaultPodKill, func(f *v1alpha1.RedisFault) {
		f.Spec.Trigger = v1alpha1.FaultTrigger{After: operatortest.Length(5 * time.Second)}
	}))
	p.TestHasReason("run", time.Minute, v1alpha1.ReasonRunning)
	address := d.as(token)
	b := browser.Start(t)
	page := b.Open(t, address+"/"+p.Namespace+"/redisloadtests/run", browser.View{})
	wait := func(what, expression string) {
		t.Helper()
		p.Until(what, 2*time.Minute, func() bool { return browser.Evaluate[bool](page, expression) }, func() string {
			return browser.Evaluate[string](page,
				`document.documentElement.dataset.live + ': ' + document.body.innerText.slice(0, 500)`) + fmt.Sprint(page.Errors())
		})
	}
	grows := func() {
		t.Helper()
		wait("the line grows", fmt.Sprintf("%s > %d", points, browser.Evaluate[int](page, points)))
	}
	wait("there is a line", points+" > 0 && !!document.getElementById('c-tps').getAttribute('d')")
	grows()
	browser.Evaluate[bool](page,
		`(d => { d.open = true; return true })([...document.querySelectorAll('main details')].at(-1))`)
	zoomed := `[...document.querySelectorAll('.bar button')].every(b => b.getAttribute('aria-pressed') === 'false')`
	// Of a record of a few steps there is nothing to zoom into yet.
	wait("the curves are zoomed",
		`(e => { if (`+zoomed+
			`) return true; e.focus(); e.dispatchEvent(new KeyboardEvent('keydown', {key: '+', bubbles: true})); return `+
			`false })(document.getElementById('curves'))`)
	grows()
	wait("the curves are still zoomed, and have the focus; what was open is open",
		zoomed+` && document.activeElement.id === 'curves' && [...document.querySelectorAll('main details')].at(-1).open`)
	browser.Evaluate[bool](page,
		`document.getElementById('curves').dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}))`)
	visible := func(selector, text string) string {
		return fmt.Sprintf(
			`[...document.querySelectorAll('#curves %s')].some(e => e.textContent.includes('%s') && getComputedStyle(e).visibility === 'visible')`,
			selector, text)
	}
	wait("the fault's mark appears, with its name", visible(".mark", "")+" && "+visible(".note", "PodKill"))
	picture(page, "live.png")
	if at := browser.Evaluate[string](page, "document.documentElement.dataset.live"); at != "live" {
		t.Errorf("the page is %s while the load runs", at)
	}
	p.FaultEnds("kill", 2*time.Minute)
	if lasts > time.Minute {
		p.MustChange(operatortest.Change(p, operatortest.NamedTest("run"), func(test *v1alpha1.RedisLoadTest) {
			test.Spec.Abort = true
		}))
	}
	p.TestEnds("run", 2*time.Minute)
	wait("the page is complete", "document.documentElement.dataset.live === 'over'")
	if verdict := browser.Evaluate[string](page,
		`document.querySelector('main .badge').textContent`); verdict != string(p.LoadTest("run").Status.Verdict) {
		t.Errorf("the page says %s", verdict)
	}
	list := b.Open(t, address+"/", browser.View{})
	if !browser.Evaluate[bool](list,
		`!!document.querySelector('a[href$="/redisloadtests/run"]') && !!document.querySelector('a[href$="/redisfaults/kill"]')`) {
		t.Error("the list lacks the objects")
	}
	picture(list, "dashboard.png")
	ofFault := b.Open(t, address+"/"+p.Namespace+"/redisfaults/kill", browser.View{})
	if finding := browser.Evaluate[string](ofFault, "document.querySelector('h1').textContent"); finding == "" {
		t.Error("the page of the fault says nothing")
	}
	for name, one := range map[string]*browser.Page{"load test": page, "list": list, "fault": ofFault} {
		if errors := one.Errors(); len(errors) > 0 {
			t.Errorf("the page of the %s has errors: %q", name, errors)
		}
		one.Readable(1280, 800, 400, 320)
	}
	if folder := os.Getenv("REDQUAKE_PICTURES_OUT"); folder != "" {
		list.Show(browser.View{Width: 400, Dark: true})
		list.Picture(filepath.Join(folder, "dashboard-400.png"), 400, 900)
	}
	savedPages(t, d, b, page, token)
}

// picture takes a picture for the documentation where REDQUAKE_PICTURES_OUT names a folder: make screenshots.
func picture(page *browser.Page, name string) {
	if folder := os.Getenv("REDQUAKE_PICTURES_OUT"); folder != "" {
		browser.Evaluate[bool](page, "document.activeElement.blur(); scrollTo({top: 0, behavior: 'instant'}); true")
		page.Picture(filepath.Join(folder, name), 1280, 900)
	}
}

// savedPages holds that a page is a report when it was saved, by its link or by the browser: it asks for nothing, and
// shows as much.
func savedPages(t *testing.T, d *pages, b *browser.Browser, page *browser.Page, token string) {
	t.Helper()
	n := browser.Evaluate[int](page, points)
	code, byLink := d.get(http.MethodGet, "/"+d.place.Namespace+"/redisloadtests/run?form=html", token)
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, byLink)
	}
	byBrowser := browser.Evaluate[string](page,
		`(e => { e.removeAttribute('data-ready'); return '<!doctype html>' + e.outerHTML })(document.documentElement.cloneNode(true))`)
	for name, text := range map[string]string{"link": byLink, "browser": byBrowser} {
		file := filepath.Join(t.TempDir(), name+".html")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		saved := b.OpenFile(t, file, browser.View{})
		if got := browser.Evaluate[int](saved, points); got != n || n == 0 {
			t.Errorf("saved by the %s: %d points, the page had %d", name, got, n)
		}
		if errors, requests := saved.Errors(), saved.Requests(); len(errors)+len(requests) > 0 {
			t.Errorf("saved by the %s: errors %q, requests %q", name, errors, requests)
		}
	}
}

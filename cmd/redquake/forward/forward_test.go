package forward

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// fakeCluster is an API server with two managers, of which it forwards ports.
type fakeCluster struct {
	t      *testing.T
	server *httptest.Server

	mu       sync.Mutex
	leader   string
	managers map[string]*httptest.Server // by pod
	tokens   int                         // that were requested
	refuse   bool                        // requests for tokens
	old      bool                        // ports are forwarded by SPDY only, as before Kubernetes 1.31
	sockets  int                         // port-forwards by WebSocket
}

func newFakeCluster(t *testing.T) *fakeCluster {
	c := &fakeCluster{t: t, leader: "manager-a", managers: map[string]*httptest.Server{}}
	for _, pod := range []string{"manager-a", "manager-b"} {
		c.managers[pod] = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/events") {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, "data: %s\n\n", pod)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				return
			}
			fmt.Fprintf(w, "%s %s %s cookie=%q origin=%q", pod, r.URL.Path, r.Header.Get("Authorization"),
				r.Header.Get("Cookie"), r.Header.Get("Origin"))
		}))
		t.Cleanup(c.managers[pod].Close)
	}
	c.server = httptest.NewServer(c)
	t.Cleanup(func() {
		c.server.CloseClientConnections()
		c.server.Close()
	})
	return c
}

func (c *fakeCluster) lead(pod string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leader = pod
}

func (c *fakeCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	leader, refuse := c.leader, c.refuse
	c.mu.Unlock()
	answer := func(code int, object any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(object)
	}
	pods := "/api/v1/namespaces/redquake-system/pods"
	switch {
	case strings.HasSuffix(r.URL.Path, "/leases/redquake.redquake.dev"):
		if leader == "" {
			answer(http.StatusNotFound, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, leaseName).Status())
			return
		}
		answer(http.StatusOK, coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: new(leader + "_5c2f")}})
	case r.URL.Path == pods:
		answer(http.StatusOK, corev1.PodList{Items: []corev1.Pod{*managerPod("manager-b")}})
	case strings.HasSuffix(r.URL.Path, "/portforward"):
		c.forward(w, r, strings.Split(r.URL.Path, "/")[6])
	case strings.HasPrefix(r.URL.Path, pods+"/"):
		answer(http.StatusOK, managerPod(strings.TrimPrefix(r.URL.Path, pods+"/")))
	case strings.HasSuffix(r.URL.Path, "/serviceaccounts/redquake-dashboard/token") && r.Method == http.MethodPost:
		if refuse {
			answer(http.StatusForbidden,
				apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts/token"}, ServiceAccount,
					fmt.Errorf("no")).Status())
			return
		}
		c.mu.Lock()
		c.tokens++
		token := fmt.Sprint("requested-", c.tokens)
		c.mu.Unlock()
		answer(http.StatusCreated, authenticationv1.TokenRequest{
			Status: authenticationv1.TokenRequestStatus{
				Token:               token,
				ExpirationTimestamp: metav1.NewTime(time.Now().Add(time.Hour)),
			},
		})
	default:
		answer(http.StatusNotFound, apierrors.NewNotFound(schema.GroupResource{Resource: "things"}, r.URL.Path).Status())
	}
}

func managerPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "redquake-system"},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{
				{
					Name:  "manager",
					Ports: []corev1.ContainerPort{{Name: "metrics", ContainerPort: 8443}, {Name: portName, ContainerPort: 8082}},
				},
			},
		},
	}
}

// forward is how an API server forwards ports: a WebSocket is a tunnel for SPDY to the kubelet.
func (c *fakeCluster) forward(w http.ResponseWriter, r *http.Request, pod string) {
	kubelet := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.kubelet(w, r, pod) })
	switch {
	case r.Header.Get("Upgrade") != "websocket":
		kubelet(w, r)
	case c.old:
		http.Error(w, "only SPDY", http.StatusBadRequest)
	default:
		c.mu.Lock()
		c.sockets++
		c.mu.Unlock()
		proxy.NewTunnelingHandler(kubelet).ServeHTTP(w, r)
	}
}

// kubelet forwards the streams of a connection to a manager, as kubelets do.
func (c *fakeCluster) kubelet(w http.ResponseWriter, r *http.Request, pod string) {
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
		return
	}
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r,
		func(stream httpstream.Stream, replied <-chan struct{}) error {
			go func() {
				<-replied
				c.connect(stream, pod)
			}()
			return nil
		})
	if conn != nil {
		<-conn.CloseChan()
	}
}

func (c *fakeCluster) connect(stream httpstream.Stream, pod string) {
	if stream.Headers().Get(corev1.PortHeader) != "8082" {
		c.t.Errorf("port %s", stream.Headers().Get(corev1.PortHeader))
	}
	if stream.Headers().Get(corev1.StreamType) != corev1.StreamTypeData {
		return
	}
	to, err := net.Dial("tcp", c.managers[pod].Listener.Addr().String())
	if err != nil {
		_ = stream.Reset()
		return
	}
	go func() {
		_, _ = io.Copy(to, stream)
		_ = to.Close()
	}()
	_, _ = io.Copy(stream, to)
	_ = stream.Close()
}

func (c *fakeCluster) operator(token string) *Operator {
	c.t.Helper()
	o, err := NewOperator(&rest.Config{Host: c.server.URL, BearerToken: token}, "redquake-system")
	if err != nil {
		c.t.Fatal(err)
	}
	return o
}

// serve serves the dashboard on this machine, and returns a browser that was admitted.
func (c *fakeCluster) serve(o *Operator, account string) (*Proxy, *Tunnel, *http.Client) {
	c.t.Helper()
	identity, err := NewIdentity(context.Background(), o, account)
	if err != nil {
		c.t.Fatal(err)
	}
	listener, err := Listen(0)
	if err != nil {
		c.t.Fatal(err)
	}
	tunnel := &Tunnel{Operator: o}
	proxy := NewProxy(listener, tunnel, identity, log.New(io.Discard, "", 0))
	server := &http.Server{Handler: proxy}
	go func() { _ = server.Serve(listener) }()
	c.t.Cleanup(func() { _ = server.Close() })
	jar, err := cookiejar.New(nil)
	if err != nil {
		c.t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Timeout: time.Minute}
	if code, body := get(c.t, browser, proxy.URL("/shop/redisloadtests/one")); code != http.StatusOK ||
		!strings.Contains(body, `url=/shop/redisloadtests/one"`) {
		c.t.Fatalf("the printed address: %d %s", code, body)
	}
	return proxy, tunnel, browser
}

func get(t *testing.T, browser *http.Client, address string) (int, string) {
	t.Helper()
	response, err := browser.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// The page comes from the leader's pod, to which the user's token goes and nothing of the browser's.
func TestDashboardOfTheLeader(t *testing.T) {
	t.Parallel()
	for _, old := range []bool{false, true} {
		t.Run(fmt.Sprintf("SPDY only %v", old), func(t *testing.T) { dashboardOfTheLeader(t, old) })
	}
}

func dashboardOfTheLeader(t *testing.T, old bool) {
	c := newFakeCluster(t)
	c.old = old
	proxy, _, browser := c.serve(c.operator("of-the-user"), "")
	want := `manager-a /shop/redisloadtests/one Bearer of-the-user cookie="" origin=""`
	for range 3 {
		if code, body := get(t, browser, "http://"+proxy.address+"/shop/redisloadtests/one"); code != http.StatusOK ||
			body != want {
			t.Errorf("%d %s, want %s", code, body, want)
		}
	}
	if c.sockets == 0 && !old {
		t.Error("the port was not forwarded by WebSocket")
	}
	c.lead("") // no election
	if m, err := c.operator("of-the-user").Leader(context.Background()); err != nil || m.Pod != "manager-b" ||
		m.Port != 8082 {
		t.Errorf("without a Lease: %+v, %v", m, err)
	}
}

// When another manager leads, streams end, and the browser's next request reaches that one.
func TestLeaderChanges(t *testing.T) {
	t.Parallel()
	c := newFakeCluster(t)
	proxy, tunnel, browser := c.serve(c.operator("of-the-user"), "")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go tunnel.Follow(ctx, 10*time.Millisecond)
	stream, err := browser.Get("http://" + proxy.address + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	first := make([]byte, len("data: manager-a"))
	if _, err := io.ReadFull(stream.Body, first); err != nil || string(first) != "data: manager-a" {
		t.Fatalf("%q, %v", first, err)
	}
	c.lead("manager-b")
	if _, err := io.Copy(io.Discard, stream.Body); ctx.Err() != nil {
		t.Fatal(err)
	}
	if _, body := get(t, browser, "http://"+proxy.address+"/"); !strings.HasPrefix(body, "manager-b") {
		t.Errorf("%s", body)
	}
}

// Without a token in the kubeconfig one of a ServiceAccount is requested, once; a missing permission is named.
func TestIdentity(t *testing.T) {
	t.Parallel()
	c := newFakeCluster(t)
	proxy, _, browser := c.serve(c.operator(""), "")
	for range 2 {
		if _, body := get(t, browser, "http://"+proxy.address+"/"); !strings.Contains(body, "Bearer requested-1 ") {
			t.Errorf("%s", body)
		}
	}
	if id, err := NewIdentity(context.Background(), c.operator("of-the-user"), ServiceAccount); err != nil ||
		!strings.Contains(id.Name, "ServiceAccount redquake-dashboard") {
		t.Errorf("a ServiceAccount that was named: %+v, %v", id, err)
	}
	if _, err := NewIdentity(context.Background(), c.operator("of-the-user"), "other"); err == nil ||
		!strings.Contains(err.Error(), "there is no ServiceAccount other of namespace redquake-system") {
		t.Errorf("one that does not exist: %v", err)
	}
	c.mu.Lock()
	c.refuse = true
	c.mu.Unlock()
	_, err := NewIdentity(context.Background(), c.operator(""), "")
	if err == nil ||
		!regexp.MustCompile(`kubeconfig has no token.*permission to create serviceaccounts/token`).MatchString(err.Error()) {
		t.Errorf("without the permission: %v", err)
	}
}

// Other sites and other users of the machine get nothing.
func TestProxyIsForOneUser(t *testing.T) {
	t.Parallel()
	c := newFakeCluster(t)
	proxy, _, browser := c.serve(c.operator("of-the-user"), "")
	here := "http://" + proxy.address
	once, err := url.Parse(proxy.URLOnce("/"))
	if err != nil {
		t.Fatal(err)
	}
	stranger := &http.Client{}
	for _, tc := range []struct {
		what, address, host, site string
		as                        *http.Client
		code                      int
	}{
		{"without a cookie", here + "/", "", "", stranger, http.StatusForbidden},
		{"another key", here + openPath + "?key=guessed&to=/", "", "", stranger, http.StatusForbidden},
		{"no key", here + openPath + "?key=&to=/", "", "", stranger, http.StatusForbidden},
		{"the name of another site", here + "/", "evil.example:" + proxy.port, "", browser, http.StatusMisdirectedRequest},
		{"another port of this machine", here + "/", "", "same-site", browser, http.StatusForbidden},
		{"another site", here + "/", "", "cross-site", browser, http.StatusForbidden},
		{"a key for one request", once.String(), "", "", stranger, http.StatusOK},
		{"the same key again", once.String(), "", "", stranger, http.StatusForbidden},
		{"on to another site", proxy.URL("//evil.example"), "", "", browser, http.StatusForbidden},
		{"on to another site", proxy.URL("https://evil.example"), "", "", browser, http.StatusForbidden},
		{"the same browser", here + "/", "", "same-origin", browser, http.StatusOK},
	} {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, tc.address, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Host = tc.host; tc.host == "" {
			r.Host = r.URL.Host
		}
		if tc.site != "" {
			r.Header.Set("Sec-Fetch-Site", tc.site)
		}
		response, err := tc.as.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != tc.code || tc.code != http.StatusOK && bytes.Contains(body, []byte("of-the-user")) {
			t.Errorf("%s: %d %s, want %d", tc.what, response.StatusCode, body, tc.code)
		}
	}
	response, err := stranger.Get(proxy.URL("/"))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	cookie := response.Header.Get("Set-Cookie")
	if !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict") {
		t.Errorf("cookie %s", cookie)
	}
}

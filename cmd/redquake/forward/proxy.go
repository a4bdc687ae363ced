package forward

import (
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// openPath is the path of the first request of a browser. No namespace is called "-".
const openPath = "/-/open"

// Proxy serves the dashboard to the browsers of one user of this machine.
type Proxy struct {
	address string // host:port that it listens on
	port    string
	key     string // of the address that is printed
	proxy   *httputil.ReverseProxy

	mu   sync.Mutex
	once string // a key that is valid for one request; "" = it was used
}

// NewProxy returns a proxy for a port of the loopback interface.
func NewProxy(listener net.Listener, tunnel *Tunnel, identity *Identity, log *log.Logger) *Proxy {
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	p := &Proxy{
		address: listener.Addr().String(),
		port:    port,
		key:     secret(),
		once:    secret(),
	}
	p.proxy = &httputil.ReverseProxy{
		Transport: &authenticated{identity: identity, next: &http.Transport{
			DialContext:           tunnel.Dial,
			ResponseHeaderTimeout: 2 * time.Minute,
			IdleConnTimeout:       time.Minute,
			DisableCompression:    true,
			// The manager's certificate is its own. That it is the manager is known from the API server,
			// which forwards the connection to its pod.
			//nolint:gosec // see above
			TLSClientConfig:     &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout: 20 * time.Second,
		}},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "https", "dashboard", ""
			for name := range r.Out.Header {
				if name != "Accept" && name != "Accept-Language" && name != "Last-Event-Id" &&
					name != "User-Agent" {
					delete(r.Out.Header, name)
				}
			}
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if r.Context().Err() != nil {
				return // the browser is gone
			}
			log.Printf("%s: %v", r.URL.Path, err)
			http.Error(w, "The manager cannot be reached; load the page again to try again.\n\n"+err.Error(),
				http.StatusBadGateway)
		},
		ErrorLog: log,
	}
	return p
}

// secret is a random text of 256 bits.
func secret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails, by its documentation
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// URL is the address that opens a path of the dashboard, in any browser of this user.
func (p *Proxy) URL(path string) string {
	return p.open(p.key, path)
}

// URLOnce is URL for one request: other users of this machine may see the arguments of the program
// that opens a browser.
func (p *Proxy) URLOnce(path string) string {
	return p.open(p.once, path)
}

func (p *Proxy) open(key, path string) string {
	return "http://" + p.address + openPath + "?" + url.Values{"key": {key}, "to": {path}}.Encode()
}

// cookie is the name of the cookie that a browser gets for its key. Cookies do not differ between
// ports, their names do.
func (p *Proxy) cookie() string {
	return "redquake-" + p.port
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// Another site that has made its name lead here (DNS rebinding) sends its own name.
	if r.Host != p.address && r.Host != "localhost:"+p.port {
		http.Error(w, "This is the dashboard of redquake, at http://"+p.address+" only.",
			http.StatusMisdirectedRequest)
		return
	}
	if r.URL.Path == openPath {
		p.admit(w, r)
		return
	}
	cookie, err := r.Cookie(p.cookie())
	if err != nil || !same(cookie.Value, p.key) {
		http.Error(w, "Open the address that redquake dashboard has printed.", http.StatusForbidden)
		return
	}
	// another port of this machine
	site := r.Header.Get("Sec-Fetch-Site")
	if site == "cross-site" || site == "same-site" {
		http.Error(w, "Another site asks for this page.", http.StatusForbidden)
		return
	}
	p.proxy.ServeHTTP(w, r)
}

func same(a, b string) bool {
	return b != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

// admit gives a browser with a key its cookie, and leads it on. It does not redirect: a browser
// that comes from elsewhere would then not send a cookie that is Strict.
func (p *Proxy) admit(w http.ResponseWriter, r *http.Request) {
	key := r.URL.Query().Get("key")
	p.mu.Lock()
	known := same(key, p.key)
	if same(key, p.once) {
		known, p.once = true, ""
	}
	p.mu.Unlock()
	to := r.URL.Query().Get("to")
	if !known || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") ||
		strings.ContainsAny(to, "\\;") {
		http.Error(w,
			"This address is not, or not any more, valid. Open the one that redquake dashboard has printed.",
			http.StatusForbidden)
		return
	}
	//nolint:gosec // http on the loopback interface, where no browser would send a Secure cookie
	http.SetCookie(w, &http.Cookie{
		Name:     p.cookie(),
		Value:    p.key,
		Path:     "/",
		HttpOnly: true,
		SameSite: http.SameSiteStrictMode,
	})
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", "default-src 'none'")
	header.Set("Cache-Control", "no-store")
	header.Set("Referrer-Policy", "no-referrer")
	_, _ = io.WriteString(w,
		`<!doctype html><meta charset="utf-8"><title>Redquake</title><meta http-equiv="refresh" content="0;url=`+
			html.EscapeString(to)+`"><a href="`+html.EscapeString(to)+`">Open the dashboard</a>`)
}

// authenticated adds the token of an identity.
type authenticated struct {
	identity *Identity
	next     http.RoundTripper
}

func (a *authenticated) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := a.identity.Token(r.Context())
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return a.next.RoundTrip(r)
}

// Listen listens on a port of the loopback interface; 0 = any free one.
func Listen(port int) (net.Listener, error) {
	listener, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, fmt.Errorf("listen on port %d of 127.0.0.1: %w; --port names another one", port, err)
	}
	return listener, nil
}

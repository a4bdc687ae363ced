// Package dashboardserver gives the pages of internal/dashboard what they show: objects from the
// cache, records of running loads from their sessions, of finished ones from their ConfigMaps; and
// has the API server decide who may see it. Nothing of it runs while nobody looks.
package dashboardserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/net/netutil"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1 "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/redquake/redquake/internal/dashboard"
)

const (
	// answersCached is how long an answer of the API server about a reader is used again: a right that
	// was withdrawn ends so much later.
	answersCached = 10 * time.Second
	// askFor bounds a question to the API server.
	askFor = 10 * time.Second
	// connections are those of readers at the same time: each browser has up to six.
	connections = 256
	// endWithin is how long responses may take to end when the manager ends.
	endWithin = 3 * time.Second
)

// Server serves the dashboard of a manager, on every replica: only the leader has the records of
// running loads.
type Server struct {
	Address string // to listen on, such as :8082
	Source  dashboard.Source
	Log     logr.Logger
	Limits  dashboard.Limits
	// over HTTPS, with a certificate of its own; otherwise only for an Address that nobody else
	// reaches
	Secure bool

	// Listening is called with the address once it is listened on; nil = it is not.
	Listening func(net.Addr)

	config *rest.Config
	client *http.Client
}

// SetupWithManager makes the server start and end with a manager.
func (s *Server) SetupWithManager(mgr manager.Manager) error {
	s.config, s.client = mgr.GetConfig(), mgr.GetHTTPClient()
	return mgr.Add(s)
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: who does not lead shows what the
// API server has.
func (s *Server) NeedLeaderElection() bool {
	return false
}

// Start implements manager.Runnable.
func (s *Server) Start(ctx context.Context) error {
	handler, err := s.handler()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", s.Address)
	if err != nil {
		return fmt.Errorf("listen for the dashboard: %w", err)
	}
	if s.Listening != nil {
		s.Listening(listener.Addr())
	}
	listener = netutil.LimitListener(listener, connections)
	if s.Secure {
		certificate, err := selfSigned()
		if err != nil {
			return errors.Join(err, listener.Close())
		}
		listener = tls.NewListener(listener, &tls.Config{
			MinVersion:   tls.VersionTLS12,
			Certificates: []tls.Certificate{certificate},
			NextProtos:   []string{"http/1.1"},
		})
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       15 * time.Second,
		IdleTimeout:       90 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(quiet{s.Log}, "", 0),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	s.Log.Info("serving the dashboard", "address", listener.Addr().String())
	select {
	case err := <-ended:
		return fmt.Errorf("serve the dashboard: %w", err)
	case <-ctx.Done():
	}
	handler.Close()
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	if err := server.Shutdown(within); err != nil {
		_ = server.Close() // a reader that does not read ends with it
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the dashboard: %w", err)
	}
	return nil
}

// handler returns the pages, for readers that the API server authenticates and authorizes.
func (s *Server) handler() (*dashboard.Handler, error) {
	reviews, err := authenticationv1.NewForConfigAndClient(s.config, s.client)
	if err != nil {
		return nil, fmt.Errorf("create the client for token reviews: %w", err)
	}
	access, err := authorizationv1.NewForConfigAndClient(s.config, s.client)
	if err != nil {
		return nil, fmt.Errorf("create the client for subject access reviews: %w", err)
	}
	once := &wait.Backoff{
		Duration: 200 * time.Millisecond,
		Factor:   1.5,
		Steps:    3,
	}
	authenticator, _, err := authenticatorfactory.DelegatingAuthenticatorConfig{
		Anonymous:                &apiserver.AnonymousAuthConfig{Enabled: false},
		CacheTTL:                 answersCached,
		TokenAccessReviewClient:  reviews,
		TokenAccessReviewTimeout: askFor,
		WebhookRetryBackoff:      once,
	}.New()
	if err != nil {
		return nil, fmt.Errorf("create the authenticator: %w", err)
	}
	authorizer, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: access,
		AllowCacheTTL:             answersCached,
		DenyCacheTTL:              answersCached,
		WebhookRetryBackoff:       once,
	}.New()
	if err != nil {
		return nil, fmt.Errorf("create the authorizer: %w", err)
	}
	return dashboard.NewHandler(dashboard.Config{
		Source:        s.Source,
		Authenticator: authenticator,
		Authorizer:    authorizer,
		Log:           s.Log,
		Limits:        s.Limits,
	}), nil
}

// selfSigned returns a certificate for this process: readers reach it by a port-forward, which the
// API server protects, or from behind an ingress.
func selfSigned() (tls.Certificate, error) {
	chain, key, err := cert.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)},
		nil)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("create the certificate of the dashboard: %w", err)
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read the certificate of the dashboard: %w", err)
	}
	return pair, nil
}

// quiet logs what a server has to say of its connections, such as a failed handshake, which any
// port scan causes.
type quiet struct{ log logr.Logger }

func (q quiet) Write(text []byte) (int, error) {
	q.log.V(1).Info("the server of the dashboard", "message", string(text))
	return len(text), nil
}

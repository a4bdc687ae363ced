// Package api reads from the lab's API server with plain HTTP and JSON: a Kubernetes client would
// make the control program slow to build.
package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/redquake/redquake/hack/lab/internal/netns"
)

// Client talks to the API server as the admin.
type Client struct {
	server string
	http   *http.Client
}

// ErrNotFound is the server's answer that there is no such object.
var ErrNotFound = errors.New("not found")

// New makes a client from the certificates in pkiDir, whose connections are opened in the network
// namespace netNS.
func New(server, pkiDir, netNS string) (*Client, error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(pkiDir, "admin.crt"),
		filepath.Join(pkiDir, "admin.key"))
	if err != nil {
		return nil, fmt.Errorf("the lab has no admin certificate: %w; start it with: hack/lab/lab up",
			err)
	}
	ca, err := os.ReadFile(filepath.Join(pkiDir, "ca.crt"))
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	dial := func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		// A socket belongs to the namespace of the thread that makes it; for one address that is the
		// calling one.
		nsErr := netns.Do(netNS, func() error {
			conn, err = (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, network, address)
			return nil
		})
		return conn, errors.Join(nsErr, err)
	}
	transport := &http.Transport{
		DialContext:     dial,
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}},
	}
	return &Client{
		server: server,
		http:   &http.Client{Transport: transport, Timeout: 10 * time.Second},
	}, nil
}

// Get requests path and decodes the response into out, unless out is nil.
func (c *Client) Get(ctx context.Context, path string, out any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server+path, nil)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("the API server does not answer: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	switch {
	case response.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s: %w", path, ErrNotFound)
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("the API server answers %s to %s: %.300s", response.Status, path, body)
	case out == nil:
		return nil
	}
	return json.Unmarshal(body, out)
}

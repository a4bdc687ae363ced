package forward

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// ServiceAccount is the one that the installation brings for readers whose kubeconfig has no token.
const ServiceAccount = "redquake-dashboard"

// tokenFor is how long a token of a ServiceAccount is valid. Another one is requested after most of
// that.
const tokenFor = time.Hour

// Identity is by which token the manager knows the reader.
type Identity struct {
	Name string // for people: whose token it is

	operator *Operator
	account  string // "" = the user of the kubeconfig

	mu      sync.Mutex
	token   string
	renewAt time.Time
}

// NewIdentity returns the identity of the user of the kubeconfig if that has a token or a program
// that prints one, otherwise, as for a client certificate, that of a ServiceAccount in the
// operator's namespace. account names another one, and is then used in any case.
func NewIdentity(ctx context.Context, o *Operator, account string) (*Identity, error) {
	id := &Identity{operator: o, account: account}
	if account == "" {
		own, err := bearer(ctx, o.config)
		if err != nil {
			return nil, fmt.Errorf("get the token of the kubeconfig: %w", err)
		}
		if own != "" {
			id.Name = "the user of the kubeconfig"
			return id, nil
		}
		id.account = ServiceAccount
	}
	id.Name = "ServiceAccount " + id.account + " of namespace " + o.Namespace
	if _, err := id.Token(ctx); err != nil {
		if account == "" {
			return nil, fmt.Errorf(
				"the kubeconfig has no token, and the dashboard cannot know you by a client certificate: %w",
				err)
		}
		return nil, err
	}
	return id, nil
}

// Token is a token that is valid now.
func (id *Identity) Token(ctx context.Context) (string, error) {
	if id.account == "" {
		return bearer(ctx, id.operator.config)
	}
	id.mu.Lock()
	defer id.mu.Unlock()
	if id.token != "" && time.Now().Before(id.renewAt) {
		return id.token, nil
	}
	body, err := json.Marshal(&authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenFor.Seconds()))},
	})
	if err != nil {
		return "", fmt.Errorf("encode the request for a token: %w", err)
	}
	where := "ServiceAccount " + id.account + " of namespace " + id.operator.Namespace
	data, err := id.operator.client.Post().
		AbsPath("/api/v1/namespaces", id.operator.Namespace, "serviceaccounts", id.account, "token").
		Body(body).Do(ctx).Raw()
	switch {
	case apierrors.IsForbidden(err):
		return "", fmt.Errorf(
			"a token of %s takes the permission to create serviceaccounts/token of it; --service-account names another one: %w",
			where, err)
	case apierrors.IsNotFound(err):
		return "", fmt.Errorf(
			"there is no %s; --service-account and --operator-namespace name another one: %w", where, err)
	case err != nil:
		return "", fmt.Errorf("request a token of %s: %w", where, err)
	}
	var answer authenticationv1.TokenRequest
	err = json.Unmarshal(data, &answer)
	if err != nil || answer.Status.Token == "" {
		return "", fmt.Errorf("the API server has returned no token of %s: %w", where, err)
	}
	id.token = answer.Status.Token
	id.renewAt = time.Now().Add(time.Until(answer.Status.ExpirationTimestamp.Time) * 4 / 5)
	return id.token, nil
}

// seen keeps the headers of a request, and sends nothing.
type seen struct{ header http.Header }

func (s *seen) RoundTrip(r *http.Request) (*http.Response, error) {
	s.header = r.Header
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{},
		Body:       http.NoBody,
		Request:    r,
	}, nil
}

// bearer is the bearer token with which client-go would send a request: from the kubeconfig, a file
// or a credential plugin, which is run again once its token has expired. "" = there is none.
func bearer(ctx context.Context, config *rest.Config) (string, error) {
	sent := &seen{}
	transport, err := rest.HTTPWrappersForConfig(config, sent)
	if err != nil {
		return "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://localhost/", nil)
	if err != nil {
		return "", err
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		return "", err
	}
	_ = response.Body.Close()
	scheme, token, _ := strings.Cut(sent.header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", nil
	}
	return token, nil
}

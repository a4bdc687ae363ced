package target

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/redis"
	"github.com/redquake/redquake/internal/redis/topology"
	"github.com/redquake/redquake/internal/target/credentials"
)

// LoginFor reads the Secrets that a target names. A Problem names the field whose Secret or key is
// missing.
// Server names are not checked against pod addresses, which no certificate holds, unless serverName
// is set.
func LoginFor(
	ctx context.Context, secrets client.Reader, namespace string, target *v1alpha1.RedisTarget,
) (redis.Login, error) {
	login, err := credentials.Login(ctx, secrets, namespace, "spec.target", target.Auth, target.TLS)
	login.Timeout = AskTimeout
	return login, err
}

// SentinelsOf returns the addresses of a target's sentinels and the login to them; zero where there
// are none.
func SentinelsOf(
	ctx context.Context, secrets client.Reader, namespace string, target *v1alpha1.RedisTarget,
	servers topology.Servers,
) (Sentinels, error) {
	spec := target.Sentinel
	if spec == nil {
		return Sentinels{}, nil
	}
	s := Sentinels{MasterName: spec.MasterName, Servers: servers}
	for _, address := range spec.Addresses {
		qualified, err := qualify(ctx, secrets, namespace, address)
		if err != nil {
			return s, err
		}
		s.Addresses = append(s.Addresses, qualified)
	}
	if spec.Service != nil {
		s.Addresses = []string{
			net.JoinHostPort(spec.Service.Name+"."+namespace+".svc", strconv.Itoa(int(spec.Service.Port))),
		}
	}
	var err error
	s.Login, err = credentials.Login(ctx, secrets, namespace, "spec.target.sentinel", spec.Auth,
		spec.TLS)
	s.Login.Timeout = AskTimeout
	return s, err
}

// qualify returns an address as it resolves in any namespace: a load pod finds SERVICE and
// POD.SERVICE by the search path of its namespace.
func qualify(
	ctx context.Context, services client.Reader, namespace, address string,
) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil || net.ParseIP(host) != nil || strings.Count(host, ".") > 1 {
		return address, nil //nolint:nilerr // what is no address fails when it is dialled
	}
	if _, name, ofPod := strings.Cut(host, "."); ofPod { // or SERVICE.NAMESPACE
		err := services.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.Service{})
		if apierrors.IsNotFound(err) {
			return address, nil
		}
		if err != nil {
			return "", fmt.Errorf("read Service %s: %w", name, err)
		}
	}
	return net.JoinHostPort(host+"."+namespace+".svc", port), nil
}

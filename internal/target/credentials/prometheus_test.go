package credentials_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/target/credentials"
	"github.com/redquake/redquake/internal/testing/faulttest"
)

// The login to a Prometheus is a token or a password; what is missing is named by its field. The name in a certificate
// is verified.
func TestPrometheusFor(t *testing.T) {
	ca := issue(t, "ca", nil)
	w := faulttest.NewWorld(t, secret("token", map[string][]byte{"token": []byte("t0ken\n")}),
		secret("basic", map[string][]byte{"username": []byte("u"), "password": []byte("p\n")}),
		secret("half", map[string][]byte{"username": []byte("u")}), secret("ca", map[string][]byte{"ca.crt": ca.cert}))
	ref := func(name string) *v1alpha1.SecretReference { return &v1alpha1.SecretReference{Name: name} }
	for name, test := range map[string]struct {
		spec        v1alpha1.PrometheusServer
		want, fails string
	}{
		"open":     {spec: v1alpha1.PrometheusServer{}, want: "//"},
		"token":    {spec: v1alpha1.PrometheusServer{AuthSecretRef: ref("token")}, want: "t0ken//"},
		"password": {spec: v1alpha1.PrometheusServer{AuthSecretRef: ref("basic")}, want: "/u/p"},
		"user without a password": {
			spec:  v1alpha1.PrometheusServer{AuthSecretRef: ref("half")},
			fails: `field.authSecretRef: Secret "half" has neither`,
		},
		"no Secret": {
			spec:  v1alpha1.PrometheusServer{AuthSecretRef: ref("none")},
			fails: `field.authSecretRef: there is no Secret "none"`,
		},
		"no authority": {
			spec:  v1alpha1.PrometheusServer{TLS: &v1alpha1.RedisTLS{CASecretRef: ref("token")}},
			fails: "field.tls.caSecretRef",
		},
		"TLS": {
			spec: v1alpha1.PrometheusServer{TLS: &v1alpha1.RedisTLS{CASecretRef: ref("ca")}},
			want: "//",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := credentials.Prometheus(t.Context(), w.Cluster, faulttest.Namespace, "field", &test.spec)
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("error %v, want %q", err, test.fails)
				}
				return
			}
			if text := fmt.Sprintf("%s/%s/%s", got.Token, got.Username, got.Password); err != nil || text != test.want {
				t.Errorf("%s, %v; want %s", text, err, test.want)
			}
			if secured := test.spec.TLS != nil; secured != (got.TLS != nil) ||
				secured && (got.TLS.InsecureSkipVerify || got.TLS.RootCAs == nil) {
				t.Errorf("TLS %+v", got.TLS)
			}
		})
	}
}

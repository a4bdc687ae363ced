package loadflags

import (
	"fmt"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/plan"
)

// applyTLS overrides the TLS settings with the flags.
func (f *Flags) applyTLS(to *plan.TLS) {
	to.CAFile, to.CertFile, to.KeyFile = f.ca, f.cert, f.key
	if f.changed("server-name") {
		to.ServerName = f.serverName
	}
	if f.changed("insecure") {
		to.InsecureSkipVerify = f.insecure
	}
}

// checkTLSSecrets returns an error for a Secret of the file that no flag replaces; field is the
// path of the TLS settings.
func (f *Flags) checkTLSSecrets(field string, tls *v1alpha1.RedisTLS) error {
	switch {
	case tls == nil:
		return nil
	case tls.CASecretRef != nil && f.ca == "" && !f.insecure:
		return fmt.Errorf("%s: %s.caSecretRef: Secrets are not read outside of a cluster: pass --ca",
			f.file, field)
	case tls.CertSecretRef != nil && f.cert == "":
		return fmt.Errorf(
			"%s: %s.certSecretRef: Secrets are not read outside of a cluster: pass --cert and --key", f.file,
			field)
	}
	return nil
}

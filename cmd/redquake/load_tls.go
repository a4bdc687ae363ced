package main

import (
	"fmt"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/plan"
)

// applyTLS puts the flags about certificates in the place of what the file says.
func (f *loadFlags) applyTLS(to *plan.TLS) {
	to.CAFile, to.CertFile, to.KeyFile = f.ca, f.cert, f.key
	if f.changed("server-name") {
		to.ServerName = f.serverName
	}
	if f.changed("insecure") {
		to.InsecureSkipVerify = f.insecure
	}
}

// checkTLSSecrets says which Secrets of a file no flag stands for; field is where the file names them.
func (f *loadFlags) checkTLSSecrets(field string, tls *v1alpha1.RedisTLS) error {
	switch {
	case tls == nil:
		return nil
	case tls.CASecretRef != nil && f.ca == "" && !f.insecure:
		return fmt.Errorf("%s: %s.caSecretRef: Secrets are not read from here: pass --ca", f.file, field)
	case tls.CertSecretRef != nil && f.cert == "":
		return fmt.Errorf("%s: %s.certSecretRef: Secrets are not read from here: pass --cert and --key", f.file, field)
	}
	return nil
}

package credentials

import (
	"context"
	"fmt"
	"net/url"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/notify"
	"github.com/redquake/redquake/internal/problem"
)

// WebhookURL reads the URL of a webhook from its Secret. field is the field that names it. A
// Problem names the field, and shows nothing of the URL.
func WebhookURL(
	ctx context.Context, secrets client.Reader, namespace, field string,
	ref v1alpha1.SecretKeyReference,
) (*url.URL, error) {
	text, err := secretKey(ctx, secrets, namespace, field, ref.Name, ref.Key)
	if err != nil {
		return nil, err
	}
	at, err := notify.ParseURL(string(text))
	if err != nil {
		return nil, &problem.Problem{
			Reason:  v1alpha1.ReasonInvalidSpec,
			Message: fmt.Sprintf("%s: key %q of Secret %q: %s", field, ref.Key, ref.Name, err),
		}
	}
	return at, nil
}

// Package kube is the command line's access to a cluster. It uses client-go's dynamic client and
// its informers, and finds resources by the API server's list of a group: packages that register
// every kind of Kubernetes would make the start of the load agent, which is the same program, twice
// as expensive.
package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// FieldManager is the owner of the fields that the command line sets.
const FieldManager = "redquake"

// Client reads and changes the objects of a cluster.
type Client struct {
	Namespace string // of objects that name none

	dynamic dynamic.Interface
	rest    *rest.RESTClient
	line    *line
	mu      sync.Mutex
	lists   map[schema.GroupVersion]*metav1.APIResourceList
}

// New returns a client for what a kubeconfig names.
func New(config *rest.Config, namespace string) (*Client, error) {
	// what client-go logs of a watch would stand between the lines of a page
	klog.SetLogger(logr.Discard())
	connection := &line{observers: map[*func(error)]bool{}}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 50, 100
	config.Wrap(func(to http.RoundTripper) http.RoundTripper { return observed{to, connection} })
	d, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	c, err := NewJSON(config)
	if err != nil {
		return nil, err
	}
	return &Client{
		Namespace: namespace,
		dynamic:   d,
		rest:      c,
		line:      connection,
		lists:     map[schema.GroupVersion]*metav1.APIResourceList{},
	}, nil
}

// Raw is the response to a GET of a path.
func (c *Client) Raw(ctx context.Context, path ...string) ([]byte, error) {
	return c.rest.Get().AbsPath(path...).Do(ctx).Raw()
}

// NewJSON returns a client that reads and writes JSON by paths, without clients for kinds.
func NewJSON(config *rest.Config) (*rest.RESTClient, error) {
	config = rest.CopyConfig(config)
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // for errors
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.GroupVersion = &schema.GroupVersion{Version: "v1"}
	config.AcceptContentTypes = runtime.ContentTypeJSON
	config.ContentType = runtime.ContentTypeJSON
	c, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return c, nil
}

// RawLabelled lists the objects at a path that a label selector selects, in JSON.
func (c *Client) RawLabelled(ctx context.Context, selector string, path ...string) ([]byte, error) {
	return c.rest.Get().AbsPath(path...).Param("labelSelector", selector).Do(ctx).Raw()
}

// ErrNoKind is that a cluster does not serve a kind.
type ErrNoKind struct{ Kind schema.GroupVersionKind }

func (e *ErrNoKind) Error() string {
	text := fmt.Sprintf("the cluster has no kind %s of %s", e.Kind.Kind, e.Kind.GroupVersion())
	if e.Kind.Group == "redquake.dev" {
		text += ": install Redquake's CRDs and its operator first"
	}
	return text
}

// resourceOf is the resource of a kind.
func (c *Client) resourceOf(
	ctx context.Context, kind schema.GroupVersionKind,
) (schema.GroupVersionResource, bool, error) {
	list, err := c.Resources(ctx, kind.GroupVersion())
	if err != nil {
		return schema.GroupVersionResource{}, false, err
	}
	for _, r := range list.APIResources {
		if r.Kind == kind.Kind && !isSubresource(r.Name) {
			return kind.GroupVersion().WithResource(r.Name), r.Namespaced, nil
		}
	}
	return schema.GroupVersionResource{}, false, &ErrNoKind{kind}
}

func isSubresource(name string) bool {
	for _, c := range name {
		if c == '/' {
			return true
		}
	}
	return false
}

// Resources are what the API server serves of a version of a group; none if it does not know it.
func (c *Client) Resources(
	ctx context.Context, of schema.GroupVersion,
) (*metav1.APIResourceList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if list := c.lists[of]; list != nil {
		return list, nil
	}
	path := []string{"/apis", of.Group, of.Version}
	if of.Group == "" {
		path = []string{"/api", of.Version}
	}
	list := &metav1.APIResourceList{}
	err := c.rest.Get().AbsPath(path...).Do(ctx).Into(list)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("list the resources of %s: %w", of, err)
	}
	c.lists[of] = list
	return list, nil
}

// on is the resource of an object, in its namespace if it has one.
func (c *Client) on(
	ctx context.Context, u *unstructured.Unstructured,
) (dynamic.ResourceInterface, error) {
	resource, namespaced, err := c.resourceOf(ctx, u.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	if !namespaced {
		return c.dynamic.Resource(resource), nil
	}
	if u.GetNamespace() == "" {
		u.SetNamespace(c.Namespace)
	}
	return c.dynamic.Resource(resource).Namespace(u.GetNamespace()), nil
}

// Apply creates or changes an object by server-side apply, or creates it if it has only a
// generateName. With dryRun the API server checks it and stores nothing.
func (c *Client) Apply(
	ctx context.Context, u *unstructured.Unstructured, dryRun bool,
) (*unstructured.Unstructured, error) {
	on, err := c.on(ctx, u)
	if err != nil {
		return nil, err
	}
	var dry []string
	if dryRun {
		dry = []string{metav1.DryRunAll}
	}
	if u.GetName() == "" {
		return on.Create(ctx, u, metav1.CreateOptions{
			DryRun:          dry,
			FieldManager:    FieldManager,
			FieldValidation: metav1.FieldValidationStrict,
		})
	}
	text, err := u.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", u.GetName(), err)
	}
	made, err := on.Patch(ctx, u.GetName(), types.ApplyPatchType, text, metav1.PatchOptions{
		DryRun:          dry,
		FieldManager:    FieldManager,
		FieldValidation: metav1.FieldValidationStrict,
	})
	if refused := (*apierrors.StatusError)(nil); errors.As(err, &refused) {
		refused.ErrStatus.Message = namingFields(refused.ErrStatus.Message)
	}
	return made, err
}

// What a server-side apply says of items of a list that lack the field by which they are told apart.
var (
	withoutKey = regexp.MustCompile(`\.(\S+): element (\d+): associative list with keys has an element that ` +
		`omits all key fields \["([^\]]*)"\] \([^)]*\)`)
	beforeKeys = regexp.MustCompile(`^failed to create typed patch object \([^)]*\): `)
)

// namingFields names the field that is missing as a create does, where a server-side apply speaks of its own schema.
func namingFields(message string) string {
	if !withoutKey.MatchString(message) {
		return message
	}
	return withoutKey.ReplaceAllString(beforeKeys.ReplaceAllString(message, ""), "$1[$2].$3: Required value")
}

// Get reads the object of the kind, the namespace and the name of u; nil if there is none.
func (c *Client) Get(
	ctx context.Context, u *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	on, err := c.on(ctx, u)
	if err != nil {
		return nil, err
	}
	found, err := on.Get(ctx, u.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

// Patch merges text, in JSON, into an object of a resource. namespace is "" for a cluster-scoped
// one.
func (c *Client) Patch(
	ctx context.Context, resource schema.GroupVersionResource, namespace, name, text string,
) error {
	_, err := c.scoped(resource, namespace).Patch(ctx, name, types.MergePatchType, []byte(text),
		metav1.PatchOptions{FieldManager: FieldManager})
	return err
}

// Delete deletes an object with a UID.
func (c *Client) Delete(
	ctx context.Context, resource schema.GroupVersionResource, namespace, name string, uid types.UID,
) error {
	err := c.scoped(resource,
		namespace).Delete(ctx, name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid},
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// List lists a resource; namespace "" is all namespaces, or a cluster-scoped resource.
func (c *Client) List(
	ctx context.Context, resource schema.GroupVersionResource, namespace string,
	options metav1.ListOptions,
) ([]unstructured.Unstructured, error) {
	list, err := c.scoped(resource, namespace).List(ctx, options)
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// Create creates an object, such as a review, and returns it as the API server answers.
func (c *Client) Create(
	ctx context.Context, resource schema.GroupVersionResource, namespace string,
	u *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	return c.scoped(resource,
		namespace).Create(ctx, u, metav1.CreateOptions{FieldManager: FieldManager})
}

func (c *Client) scoped(
	resource schema.GroupVersionResource, namespace string,
) dynamic.ResourceInterface {
	if namespace == "" {
		return c.dynamic.Resource(resource)
	}
	return c.dynamic.Resource(resource).Namespace(namespace)
}

package target

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pageSize is how many objects one request for a list returns at most.
const pageSize = 500

// EachPage lists objects page by page into list, and calls each for every page until it returns false. The reader must be the API server: a cache has no pages.
func EachPage(ctx context.Context, reader client.Reader, list client.ObjectList, each func() bool, options ...client.ListOption) error {
	for token := ""; ; {
		if err := reader.List(ctx, list, append(options[:len(options):len(options)], client.Limit(pageSize), client.Continue(token))...); err != nil {
			return err
		}
		more := list.GetContinue()
		if !each() || more == "" {
			return nil
		}
		token = more
	}
}

// ListPods lists the pods of a namespace, page by page.
func (r Redis) ListPods(ctx context.Context, options ...client.ListOption) ([]corev1.Pod, error) {
	since := time.Now()
	var all []corev1.Pod
	var page corev1.PodList
	err := EachPage(ctx, r.Live, &page, func() bool {
		all = append(all, page.Items...)
		page.Items = nil // the next page must not be decoded over these
		return true
	}, append(options[:len(options):len(options)], client.InNamespace(r.Namespace))...)
	if err != nil {
		return nil, fmt.Errorf("list pods in namespace %s: %w", r.Namespace, err)
	}
	r.learn(since, all...)
	return all, nil
}

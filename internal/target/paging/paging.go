// Package paging lists objects of the API server in pages, so that no answer is larger than what a
// page may be.
package paging

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pageSize is how many objects one request for a list returns at most.
const pageSize = 500

// Each lists objects page by page into list, and calls each for every page until it returns false.
// The reader must be the API server: a cache has no pages.
func Each(
	ctx context.Context, reader client.Reader, list client.ObjectList, each func() bool,
	options ...client.ListOption,
) error {
	for token := ""; ; {
		err := reader.List(ctx, list,
			append(options[:len(options):len(options)], client.Limit(pageSize),
				client.Continue(token))...)
		if err != nil {
			return err
		}
		more := list.GetContinue()
		if !each() || more == "" {
			return nil
		}
		token = more
	}
}

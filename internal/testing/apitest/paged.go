package apitest

import (
	"context"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// pageSize is small, so that few objects need several pages. Many objects are in no more than pagesOfMany: the fake
// client copies all of them for each.
const pageSize, pagesOfMany = 2, 20

// Paged is a client in memory that lists page by page, as the API server does and the fake client does not. A list of
// whatever length in one piece fails: it could be one of all objects of a large cluster.
func Paged(c client.WithWatch) client.WithWatch {
	return interceptor.NewClient(c, interceptor.Funcs{List: ListPage})
}

// ListPage lists one page.
func ListPage(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
	given := client.ListOptions{}
	given.ApplyOptions(options)
	if given.Raw != nil && given.Raw.ResourceVersion != "" { // an informer lists again, from the API server's cache
		return c.List(ctx, list, options...)
	}
	if given.Limit == 0 {
		return fmt.Errorf("%T is listed without a limit", list)
	}
	limit, from := int(given.Limit), 0
	if given.Continue != "" {
		var err error
		if from, err = strconv.Atoi(given.Continue); err != nil {
			return err
		}
	}
	given.Limit, given.Continue = 0, ""
	if err := c.List(ctx, list, &given); err != nil {
		return err
	}
	all, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	limit = min(limit, max(pageSize, len(all)/pagesOfMany))
	if to := from + limit; to < len(all) {
		list.SetContinue(strconv.Itoa(to))
		all = all[:to]
	}
	return meta.SetList(list, all[min(from, len(all)):])
}

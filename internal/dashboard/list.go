package dashboard

import (
	"bytes"
	"context"
	_ "embed" // the page
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"html/template"
	"maps"
	"net/http"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/page"
)

// A list has at most so many objects of a resource, and looks into so many namespaces for a reader
// who may not list all of them.
const (
	objectsShown     = 200
	namespacesLooked = 100
)

// listing is a list as one reader sees it.
type listing struct {
	Namespace string // "" = all
	View      view
	Any       bool // there is an object, shown or not
	Groups    []group
	Notes     []string
	Revision  string
}

// group is the objects of a resource.
type group struct {
	Title, Resource string
	Objects         []Object
	All             int // with those that the view leaves out
	More            int
}

var groups = map[string]group{
	LoadTests:   {Title: "Load tests", Resource: LoadTests},
	Faults:      {Title: "Faults", Resource: Faults},
	Experiments: {Title: "Experiments", Resource: Experiments},
	Schedules:   {Title: "Schedules", Resource: Schedules},
}

// visible is what a reader may list. The error names the permission that is missing if that is
// nothing.
func (h *Handler) visible(ctx context.Context, who user.Info, namespace string) (*listing, error) {
	l := &listing{Namespace: namespace}
	var lacks []permission
	for _, resource := range resources {
		in, missing, err := h.permitted(ctx, who, resource, namespace, l)
		if err != nil {
			return nil, err
		}
		if len(in) == 0 {
			lacks = append(lacks, missing)
			continue
		}
		g := groups[resource]
		for _, one := range in {
			list, more, err := h.Source.Objects(ctx, resource, one, objectsShown-len(g.Objects))
			if err != nil {
				return nil, fmt.Errorf("list %s: %w", resource, err)
			}
			g.Objects, g.More = append(g.Objects, list...), g.More+more
		}
		l.Groups = append(l.Groups, g)
	}
	if len(lacks) == len(resources) {
		return nil, &statusError{
			http.StatusForbidden,
			fmt.Sprintf(
				"This page needs the permission to %s, which user %s does not have. For one namespace, open /NAMESPACE/.",
				lacks[0], who.GetName()),
		}
	}
	for _, p := range lacks {
		l.Notes = append(l.Notes, "You do not have the permission to "+p.String()+".")
	}
	l.Revision = l.revision(time.Now())
	return l, nil
}

// permitted are the namespaces of which a reader may list a resource; "" is all. missing is what
// would be needed if there is none.
func (h *Handler) permitted(
	ctx context.Context, who user.Info, resource, namespace string, l *listing,
) (in []string, missing permission, err error) {
	whole := permission{"list", resource, namespace, ""}
	ok, err := h.may(ctx, who, whole)
	switch {
	case err != nil:
		return nil, whole, err
	case ok:
		return []string{namespace}, whole, nil
	case namespace != "":
		return nil, whole, nil
	}
	all, err := h.Source.Namespaces(ctx)
	if err != nil {
		return nil, whole, fmt.Errorf("list the namespaces with objects: %w", err)
	}
	if len(all) > namespacesLooked {
		if resource == resources[0] {
			l.Notes = append(l.Notes,
				fmt.Sprintf(
					"Only %d of the %d namespaces with objects were looked into: open /NAMESPACE/ for another one.",
					namespacesLooked, len(all)))
		}
		all = all[:namespacesLooked]
	}
	for _, one := range all {
		ok, err := h.may(ctx, who, permission{"list", resource, one, ""})
		if err != nil {
			return nil, whole, err
		}
		if ok {
			in = append(in, one)
		}
	}
	return in, whole, nil
}

// revision changes with every object, and every minute, as ages do.
func (l *listing) revision(now time.Time) string {
	sum := fnv.New128a()
	for _, g := range l.Groups {
		fmt.Fprintf(sum, "%s %d\n", g.Resource, g.More)
		for _, o := range g.Objects {
			fmt.Fprintf(sum, "%s %s\n", o.path(), o.Revision)
		}
	}
	fmt.Fprintf(sum, "%d", now.Unix()/60)
	return hex.EncodeToString(sum.Sum(nil))
}

//go:embed list.html
var listPage string

var lists = template.Must(template.New("list").Funcs(template.FuncMap{
	"styles": page.Styles,
	"script": page.Script,
	"sign":   func(v report.Verdict) template.HTML { return page.Sign(v) },
	"choices": func() (names []string) {
		for _, c := range choices {
			names = append(names, c.Name)
		}
		return names
	},
	"orders": func() []string { return append([]string{""}, slices.Sorted(maps.Keys(orders))...) },
	"path":   func(o Object) string { return o.path() },
	"age":    func(t time.Time) string { return duration.HumanDuration(time.Since(t)) },
	"stamp":  func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
}).Parse(listPage))

// list serves the list of objects.
func (h *Handler) list(w http.ResponseWriter, r *http.Request, who user.Info) error {
	l, err := h.visible(r.Context(), who, r.PathValue("namespace"))
	if err != nil {
		return err
	}
	l.show(viewOf(r.URL.Query()))
	var b bytes.Buffer
	if err := lists.Execute(&b, l); err != nil {
		return fmt.Errorf("write the list: %w", err)
	}
	send(w, "text/html; charset=utf-8", b.Bytes())
	return nil
}

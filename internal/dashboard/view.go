package dashboard

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/redquake/redquake/internal/report"
)

// view is which objects a list shows, and in which order. The zero value is all, the newest first.
type view struct{ Show, Sort string }

// choice is one of the objects that a list shows.
type choice struct {
	Name string // in the query
	of   func(o *Object) bool
}

var choices = []choice{
	{"", func(*Object) bool { return true }},
	{"running", func(o *Object) bool { return !o.Over && o.Resource != Schedules }},
	{"passed", func(o *Object) bool { return o.Verdict == report.Pass }},
	{"failed", func(o *Object) bool { return o.Failed || o.Verdict == report.Fail }},
	{"inconclusive", func(o *Object) bool { return o.Verdict == report.Inconclusive }},
}

// orders are those of a list, by their names in the query.
var orders = map[string]func(a, b Object) int{
	"name":    func(a, b Object) int { return strings.Compare(a.Name, b.Name) },
	"verdict": func(a, b Object) int { return cmp.Compare(rank(&a), rank(&b)) },
}

// rank is how much an object needs a reader: the failed first.
func rank(o *Object) int {
	return slices.IndexFunc([]bool{
		o.Failed, o.Verdict == report.Fail, o.Verdict == report.Inconclusive, !o.Over, true,
	}, func(is bool) bool { return is })
}

// viewOf is what a query asks for: ?show=failed&sort=name. What it does not know is left out.
func viewOf(q url.Values) (v view) {
	for _, c := range choices {
		if c.Name == q.Get("show") {
			v.Show = c.Name
		}
	}
	if orders[q.Get("sort")] != nil {
		v.Sort = q.Get("sort")
	}
	return v
}

// With is the address of the same list with another choice, Sorted of that in another order.
func (v view) With(show string) string   { return view{show, v.Sort}.query() }
func (v view) Sorted(sort string) string { return view{v.Show, sort}.query() }

func (v view) query() string {
	q := url.Values{}
	if v.Show != "" {
		q.Set("show", v.Show)
	}
	if v.Sort != "" {
		q.Set("sort", v.Sort)
	}
	return "?" + q.Encode()
}

// show leaves what a view shows, in its order.
func (l *listing) show(v view) {
	l.View = v
	i := slices.IndexFunc(choices, func(c choice) bool { return c.Name == v.Show })
	for k := range l.Groups {
		g := &l.Groups[k]
		g.All = len(g.Objects)
		l.Any = l.Any || g.All > 0
		g.Objects = slices.DeleteFunc(g.Objects, func(o Object) bool { return !choices[i].of(&o) })
		if order := orders[v.Sort]; order != nil {
			slices.SortStableFunc(g.Objects, order)
		}
	}
}

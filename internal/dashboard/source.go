// Package dashboard serves load tests, faults, experiments and schedules as pages: a list, and for
// each object its report, which follows the object until it is complete. It only reads. Who may see
// what is decided by the API server, as for kubectl. It has no client of Kubernetes: package
// controllers/dashboardserver reads for it.
package dashboard

import (
	"context"
	"errors"
	"time"

	"github.com/redquake/redquake/internal/report"
)

// ErrNotFound is returned for an object that does not exist, or that is of a namespace that this
// operator does not watch.
var ErrNotFound = errors.New("there is no such object")

// The resources that have pages.
const (
	LoadTests   = "redisloadtests"
	Faults      = "redisfaults"
	Experiments = "redisexperiments"
	Schedules   = "redisexperimentschedules"
)

// resources are those of a list, in its order.
var resources = []string{LoadTests, Faults, Experiments, Schedules}

// Key names an object.
type Key struct{ Resource, Namespace, Name string }

func (k Key) path() string {
	return "/" + k.Namespace + "/" + k.Resource + "/" + k.Name
}

// Object is an entry of the list.
type Object struct {
	Key
	Type     string // what it is, such as PodKill; "" = its resource tells it
	Status   string // as kubectl get shows it
	Verdict  report.Verdict
	Figures  []report.Fact // the few of the status that are shown beside it
	Created  time.Time
	Revision string // another one for every change
}

// Revision is a state of what a page shows.
type Revision struct {
	ID   string // differs from that of every earlier state
	Over bool   // it will not change any more
}

// Source is what the pages are made of. Its methods are called for requests alone, a few at a time;
// they are safe for concurrent use.
type Source interface {
	// Namespaces are those with objects, in alphabetical order.
	Namespaces(ctx context.Context) ([]string, error)
	// Objects are the objects of a resource in a namespace, the newest first. "" = all namespaces. At
	// most limit are returned; more is how many there are in addition.
	Objects(
		ctx context.Context, resource, namespace string, limit int,
	) (list []Object, more int, err error)
	// Revision is the state of an object and of what belongs to it. It costs little.
	Revision(ctx context.Context, key Key) (Revision, error)
	// Report makes the report of an object. It may take seconds.
	Report(ctx context.Context, key Key) (*report.Document, error)
}

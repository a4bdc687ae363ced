//go:build integration

package stage

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/chaosmesh/object"
	"github.com/redquake/redquake/internal/testing/meshplace"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// How the end of a fault was measured, in the rows of losses.
const (
	byServers = "servers" // their settings, and whether they answer
	// its number of replicas and its template, which its controller then puts into effect
	ByStatefulSet = "StatefulSet"
	byPods        = "pods"        // their resources
	byNetwork     = "packets"     // that are dropped
	byDisk        = "volumes"     // that are full
	byDeployments = "Deployments" // their replicas
	byNodes       = "nodes"       // their taints, and the pods that hold volumes on them
	// those that are not deleted: its stand-in has no other effect
	byChaosMesh = "objects of Chaos Mesh"
	NothingToDo = "nothing to restore" // the fault leaves nothing
	NotInjected = "not injected"       // it needs the API server, which was stopped
	// an injection of several steps that nobody led: it is given up after lifecycle.StepsPatience, or
	// goes on with the next leader
	NotComplete = "not complete"
	Unobserved  = "its end was not seen" // a failure
)

// Gauge shows from outside whether a fault is there, by what its revert changes itself.
type Gauge struct {
	Name    string
	Shows   func() map[string]string
	AsksAPI bool
}

// GaugeOf is the gauge for a kind on its stage.
func GaugeOf(s *Stage, kind Kind) Gauge {
	switch {
	case kind.gauge != nil:
		return kind.gauge(s)
	case kind.needs == NeedsMesh:
		return Gauge{byChaosMesh, func() map[string]string { return chaosObjects(s.Place) }, true}
	case s.redisShows != nil:
		return Gauge{byServers, s.redisShows, false}
	}
	return Gauge{ByStatefulSet, func() map[string]string { return sizes(s.Place) }, true}
}

func ofPods(s *Stage) Gauge {
	return Gauge{byPods, only(s.Place, "pod "), true}
}

func ofNodes(s *Stage) Gauge {
	return Gauge{byNodes, func() map[string]string { return nodes(s.Place) }, true}
}

func ofDeployments(s *Stage) Gauge {
	return Gauge{byDeployments, only(s.Place, "deployment "), true}
}

// chaosObjects are the objects of Chaos Mesh that nobody has deleted.
func chaosObjects(p *operatortest.Place) map[string]string {
	shows := map[string]string{}
	for _, kind := range meshplace.Kinds() {
		list := object.NewList(kind)
		if err := p.Client.List(context.Background(), list, client.InNamespace(p.Namespace)); err != nil {
			shows[kind.Kind] = err.Error()
		}
		for _, o := range objectsOf(list) {
			if o.GetDeletionTimestamp() == nil {
				shows[kind.Kind+" "+o.GetName()] = "exists"
			}
		}
	}
	return shows
}

// only returns a part of clusterShows.
func only(p *operatortest.Place, prefix string) func() map[string]string {
	return func() map[string]string {
		shows := clusterShows(p)
		for name := range shows {
			if !strings.HasPrefix(name, prefix) {
				delete(shows, name)
			}
		}
		return shows
	}
}

// nodes are the nodes of the place, and the pods by which faults hold volumes.
func nodes(p *operatortest.Place) map[string]string {
	shows := only(p, "node ")()
	var holders corev1.PodList
	if err := p.Client.List(context.Background(), &holders, client.InNamespace(p.Namespace),
		client.HasLabels{
			v1alpha1.LabelFault,
		}); err != nil {
		shows["holders"] = err.Error()
	}
	for i := range holders.Items {
		if holders.Items[i].DeletionTimestamp == nil {
			shows["pod "+holders.Items[i].Name] = "holds a volume"
		}
	}
	return shows
}

// sizes are the numbers of replicas and the templates of the StatefulSets.
func sizes(p *operatortest.Place) map[string]string {
	shows := map[string]string{}
	var sets appsv1.StatefulSetList
	if err := p.Client.List(context.Background(), &sets, client.InNamespace(p.Namespace)); err != nil {
		shows["statefulsets"] = err.Error()
	}
	for i := range sets.Items {
		template, _ := json.Marshal(sets.Items[i].Spec.Template)
		shows[sets.Items[i].Name] = fmt.Sprintf("%d of %s", *sets.Items[i].Spec.Replicas, template)
	}
	return shows
}

//go:build integration

package controllers

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
)

// How the end of a fault was measured, in the rows of losses.
const (
	byServers = "servers" // their settings, and whether they answer
	// its number of replicas and its template, which its controller then puts into effect
	byStatefulSet = "StatefulSet"
	byPods        = "pods"                  // their resources
	byNodes       = "nodes"                 // their taints, and the pods that hold volumes on them
	byChaosMesh   = "objects of Chaos Mesh" // those that are not deleted: its stand-in has no other effect
	nothingToDo   = "nothing to restore"    // the fault leaves nothing
	notInjected   = "not injected"          // it needs the API server, which was stopped
	// an injection of several steps that nobody led: it is given up after lifecycle.StepsPatience, or goes on with the
	// next leader
	notComplete = "not complete"
	unobserved  = "its end was not seen" // a failure
)

// gauge shows from outside whether a fault is there, by what its revert changes itself.
type gauge struct {
	name    string
	shows   func() map[string]string
	asksAPI bool
}

// gaugeOf is the gauge for a kind on its stage.
func gaugeOf(s *crashStage, kind crashKind) gauge {
	switch {
	case kind.gauge != nil:
		return kind.gauge(s)
	case kind.needs == needsMesh:
		return gauge{byChaosMesh, func() map[string]string { return s.chaosObjects() }, true}
	case s.redisShows != nil:
		return gauge{byServers, s.redisShows, false}
	}
	return gauge{byStatefulSet, func() map[string]string { return s.sizes() }, true}
}

func ofPods(s *crashStage) gauge { return gauge{byPods, s.only("pod "), true} }

func ofNodes(s *crashStage) gauge {
	return gauge{byNodes, func() map[string]string { return s.nodes() }, true}
}

// chaosObjects are the objects of Chaos Mesh that nobody has deleted.
func (p *place) chaosObjects() map[string]string {
	shows := map[string]string{}
	for _, kind := range kindsOfMesh() {
		list := object.NewList(kind)
		if err := p.client.List(context.Background(), list, client.InNamespace(p.namespace)); err != nil {
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
func (p *place) only(prefix string) func() map[string]string {
	return func() map[string]string {
		shows := p.clusterShows()
		for name := range shows {
			if !strings.HasPrefix(name, prefix) {
				delete(shows, name)
			}
		}
		return shows
	}
}

// nodes are the nodes of the place, and the pods by which faults hold volumes.
func (p *place) nodes() map[string]string {
	shows := p.only("node ")()
	var holders corev1.PodList
	if err := p.client.List(context.Background(), &holders, client.InNamespace(p.namespace), client.HasLabels{
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
func (p *place) sizes() map[string]string {
	shows := map[string]string{}
	var sets appsv1.StatefulSetList
	if err := p.client.List(context.Background(), &sets, client.InNamespace(p.namespace)); err != nil {
		shows["statefulsets"] = err.Error()
	}
	for i := range sets.Items {
		template, _ := json.Marshal(sets.Items[i].Spec.Template)
		shows[sets.Items[i].Name] = fmt.Sprintf("%d of %s", *sets.Items[i].Spec.Replicas, template)
	}
	return shows
}

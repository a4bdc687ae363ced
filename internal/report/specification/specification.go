// Package specification shows the objects that a report is about, as the API server has them.
package specification

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/report"
)

// Of is an object of a kind as YAML, without its status and what only the API server needs.
func Of(kind string, o *metav1.ObjectMeta, spec any) string {
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(),
		"kind":       kind,
		"metadata":   map[string]string{"name": o.Name, "namespace": o.Namespace},
		"spec":       spec,
	})
	if err != nil { // a decoded object can be encoded
		return ""
	}
	return string(text)
}

// Section is the specification of a report; nil = it has none.
func Section(d *report.Document) *report.Section {
	if d.Specification == "" {
		return nil
	}
	return &report.Section{
		ID:      "spec",
		Title:   "Specification",
		Finding: report.Text("as the API server has it, defaults included"),
		Texts:   []string{d.Specification},
		Folded:  true,
		Derived: true,
	}
}

package soak

import "fmt"

// The marks under which effects of faults are noted.

// MarkConfig is that a server of a world has this value of MarkParameter.
func MarkConfig(world, value string) string {
	return world + ": " + MarkParameter + "=" + value
}

// MarkResources is that a pod of a world asks for so many thousandths of a CPU.
func MarkResources(world string, milli int64) string {
	return fmt.Sprintf("%s: cpu=%dm", world, milli)
}

// MarkTemplate is that the StatefulSet of a world has the annotation of a fault in its template.
func MarkTemplate(world, fault string) string {
	return world + ": template of " + fault
}

// MarkTaint is that a node has the annotation of a fault that has tainted it.
func MarkTaint(uid string) string {
	return "taint by " + uid
}

//go:build integration

package stage

import (
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (d Draw) quantity(values ...string) *resource.Quantity {
	if d.Yes() {
		return nil
	}
	return new(resource.MustParse(Pick(d, values...)))
}

// Draw makes random objects: every optional field there or not, values at and around their limits.
type Draw struct{ *rand.Rand }

// Yes is true half of the time.
func (d Draw) Yes() bool {
	return d.IntN(2) == 0
}

// Pick is one of some values.
func Pick[T any](d Draw, values ...T) T {
	return values[d.IntN(len(values))]
}

// Maybe is nil or one of some values.
func Maybe[T any](d Draw, values ...T) *T {
	if d.Yes() {
		return nil
	}
	return new(Pick(d, values...))
}

// Value is one of some durations, or none.
func (d Draw) Value(values ...time.Duration) metav1.Duration {
	return metav1.Duration{Duration: Pick(d, append(values, 0)...)}
}

// Text is one of some texts.
func (d Draw) Text(values ...string) string {
	return Pick(d, values...)
}

package output

import (
	"fmt"
	"io"
	"slices"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/cmd/redquake/kube"
	"github.com/redquake/redquake/internal/report"
	"github.com/redquake/redquake/internal/report/matrix"
	"github.com/redquake/redquake/internal/report/run"
)

// WriteEnds writes how objects have ended: the short report of each, by its status as it was last
// seen.
func WriteEnds(out io.Writer, objects []*kube.Object) error {
	for i, o := range objects {
		d, err := EndOf(o, objects)
		if err != nil {
			return err
		}
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := report.WriteText(out, run.Short(d)); err != nil {
			return err
		}
	}
	return nil
}

// EndOf makes the report of an object that was shown, with the faults of a load, or the load of a
// fault, if they were shown, too.
func EndOf(o *kube.Object, shown []*kube.Object) (*report.Document, error) {
	switch o.Kind {
	case kube.LoadTest:
		in := run.Input{Test: o.Test}
		for _, other := range shown {
			if other.Kind == kube.Fault {
				in.Faults = append(in.Faults, *other.Fault)
			}
		}
		return run.LoadTest(in), nil
	case kube.Fault:
		in := run.Input{Faults: []v1alpha1.RedisFault{*o.Fault}}
		if i := slices.IndexFunc(shown, func(other *kube.Object) bool {
			return other.Kind == kube.LoadTest && other.Test.Name == o.Fault.Status.LoadTest
		}); i >= 0 {
			in.Test = shown[i].Test
		}
		return run.Fault(in, o.Fault.Name)
	}
	return matrix.Status(o.Experiment), nil
}

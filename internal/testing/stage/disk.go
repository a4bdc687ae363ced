//go:build integration

package stage

import (
	"context"
	"maps"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/testing/diskfilltest"
	"github.com/redquake/redquake/internal/testing/operatortest"
)

// diskKinds are those that fill the volume of a server. Their program is run by a kubelet, through a
// real API server; the volumes are in the memory of this process.
var diskKinds = []Kind{
	{
		Name:  "DiskFull",
		Quick: true,
		Fault: v1alpha1.FaultDiskFull,
		needs: NeedsDisk,
		On:    NewNetworkPlace,
		Scene: OnDisk,
		gauge: func(s *Stage) Gauge { return Gauge{byDisk, func() map[string]string { return full(s.Place) }, false} },
		Spec: func(_ *operatortest.Place, spec *v1alpha1.RedisFaultSpec) {
			spec.Duration = operatortest.Length(time.Second)
		},
		Wild: func(d Draw, a *v1alpha1.Action) {
			a.DiskFull = Maybe(d, v1alpha1.DiskFull{
				Leave: Pick(d, resource.Quantity{}, resource.MustParse("16Mi"), resource.MustParse("2Gi"), resource.MustParse("-1")),
			})
		},
	},
}

// OnDisk is the scene of a server that keeps its data on a volume, and shows whether that is full.
func OnDisk(p *operatortest.Place) Scene {
	sc := FleetOf(1, Stored)(p)
	StartEphemeral(p)
	shows := sc.Shows
	sc.Shows = func() map[string]string {
		all := shows()
		maps.Copy(all, full(p))
		return all
	}
	return sc
}

// Stored gives a claim to each pod of a fleet, and has the servers keep their data on it.
func Stored(f *Fleet, set *appsv1.StatefulSet) {
	f.Options = append(f.Options, "--appendonly", "yes")
	OnClaims(f, set)
}

// full is which volumes of the place are full.
func full(p *operatortest.Place) map[string]string {
	volumes := networkServer.pods.Other.(*diskfilltest.Volumes)
	return map[string]string{"volumes": strings.Join(volumes.Full(context.Background(), p.Namespace), "; ")}
}

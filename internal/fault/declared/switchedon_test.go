package declared_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/redquake/redquake/api/v1alpha1"
	"github.com/redquake/redquake/internal/fault/declared"
)

func TestSwitchedOn(t *testing.T) {
	without := func(names ...v1alpha1.FaultType) []v1alpha1.FaultType {
		return slices.DeleteFunc(declared.Types(), func(typ v1alpha1.FaultType) bool { return slices.Contains(names, typ) })
	}
	const loss, delay, data, zone, full = v1alpha1.FaultNodeLoss, v1alpha1.FaultVolumeAttachDelay,
		v1alpha1.FaultVolumeLoss, v1alpha1.FaultZoneLoss, v1alpha1.FaultDiskFull
	for _, tc := range []struct {
		list string
		want []v1alpha1.FaultType
		err  string
	}{
		{"*", without(loss, delay, data, zone, full), ""},
		{"", nil, ""},
		{"PodKill", []v1alpha1.FaultType{v1alpha1.FaultPodKill}, ""},
		{"External", []v1alpha1.FaultType{v1alpha1.FaultExternal}, ""},
		{" PodKill , Failover", []v1alpha1.FaultType{v1alpha1.FaultFailover, v1alpha1.FaultPodKill}, ""},
		{"*,NodeLoss,VolumeAttachDelay,ZoneLoss,*,DiskFull,VolumeLoss", declared.Types(), ""},
		{"*,-Hang,*,VolumeLoss", without(loss, delay, zone, full, v1alpha1.FaultHang), ""},
		{"NodeLoss,*", without(delay, data, zone, full), ""},
		{"*,-Hang,-ClockSkew", without(loss, delay, data, zone, full, v1alpha1.FaultHang, v1alpha1.FaultClockSkew), ""},
		{"-Hang,*", without(loss, delay, data, zone, full, v1alpha1.FaultHang), ""},
		{"PodKil", nil, `"PodKil" is no type of fault; there are BackgroundSave, CPUStress, `},
		{"*,-PodKil", nil, `"PodKil" is no type of fault`},
		{"-*", nil, `"*" is no type of fault`},
		{"*,", nil, `"" is no type of fault`},
		{" ", nil, `"" is no type of fault`},
		{"podkill", nil, `"podkill" is no type of fault`},
	} {
		got, err := declared.SwitchedOn(tc.list)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q: %v, want %s", tc.list, err, tc.err)
			}
			continue
		}
		if err != nil || got == nil || !slices.Equal(got, tc.want) {
			t.Errorf("%q: %v, %v; want %v", tc.list, got, err, tc.want)
		}
	}
}

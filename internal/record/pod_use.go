package record

import "github.com/redquake/redquake/internal/record/codec"

// PodUse is what one container of an observed pod used, as the metrics API reports it.
type PodUse struct {
	At        int64  // end of the window that CPU is about, nanoseconds since T; may be negative
	Window    int64  // its length, nanoseconds
	Name      string // of the observed pods
	Pod       string
	Container string

	CPU      float64 // cores, mean over the window
	MaxCPU   float64 // cores, the highest of the readings that were merged into this one
	CPULimit float64 // cores; 0 = no limit
	Memory   int64   // bytes of the working set, the highest
}

// minPodUseSize is the length of an empty PodUse: 3 texts, 3 numbers, 3 floats.
const minPodUseSize = 3 + 3 + 3*8

func appendPodUse(dst []byte, u *PodUse) []byte {
	for _, v := range [...]int64{u.At, u.Window, u.Memory} {
		dst = codec.AppendInt(dst, v)
	}
	for _, v := range [...]string{u.Name, u.Pod, u.Container} {
		dst = codec.AppendText(dst, v)
	}
	for _, v := range [...]float64{u.CPU, u.MaxCPU, u.CPULimit} {
		dst = codec.AppendFloat(dst, v)
	}
	return dst
}

// AppendPodUses writes readings of observed pods.
func AppendPodUses(dst []byte, list []PodUse) []byte {
	return codec.AppendList(dst, list, appendPodUse)
}

// ReadPodUses reads the output of AppendPodUses.
func ReadPodUses(r *codec.Reader) []PodUse {
	return codec.ReadList(r, minPodUseSize, func(u *PodUse) {
		*u = PodUse{
			At:        r.Int(),
			Window:    r.Int(),
			Memory:    r.Int(),
			Name:      r.Text(),
			Pod:       r.Text(),
			Container: r.Text(),
			CPU:       r.Float(),
			MaxCPU:    r.Float(),
			CPULimit:  r.Float(),
		}
	})
}

package bottleneck

import (
	"runtime"
	"testing"
)

func TestSelfMeasuresThisProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the process's CPU time is read on Linux only")
	}
	self := NewSelf()
	before := self.Read()
	for sum, i := 0, 0; self.Read().CPUSeconds < before.CPUSeconds+0.1; i++ {
		sum += i
	}
	runtime.GC()
	after := self.Read()
	if after.CPUSeconds < before.CPUSeconds+0.1 || after.GCPauseSeconds <= before.GCPauseSeconds {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if after.Memory < 1<<20 || after.Memory > 1<<36 || after.CPULimit < 0 {
		t.Errorf("%+v", after)
	}
}

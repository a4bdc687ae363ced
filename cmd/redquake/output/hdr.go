package output

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/redquake/redquake/internal/record"
	"github.com/redquake/redquake/internal/record/merged"
)

// Bounds of the histograms in a log of HdrHistogram, in nanoseconds, and its digits: those of the
// record, whose unit is a microsecond.
const (
	hdrLowest  = int64(time.Microsecond)
	hdrHighest = int64(10 * time.Minute)
	hdrDigits  = 3
)

// hdrLine is the least length of a line of such a log.
const hdrLine = time.Second

// WriteHDR writes the latencies from an instant on as a log of HdrHistogram, version 1.3: a line for
// each operation and second, or a longer part of a coarser record, with the operation as the tag.
// Values are nanoseconds, and the highest of a line milliseconds, as its tools expect.
func (f *File) WriteHDR(series *merged.Series, from time.Duration) error {
	if f == nil {
		return nil
	}
	var b bytes.Buffer
	if err := writeHDR(&b, series, from); err != nil {
		return fmt.Errorf("%s: %w", f.flag, err)
	}
	return f.write(b.Bytes())
}

// hdrLog is such a log.
type hdrLog struct {
	*hdrhistogram.HistogramLogWriter
	series *merged.Series
	ops    []*hdrhistogram.Histogram // of the line that is not written yet
}

func writeHDR(to io.Writer, series *merged.Series, from time.Duration) error {
	log := &hdrLog{HistogramLogWriter: hdrhistogram.NewHistogramLogWriter(to), series: series}
	for range series.Ops {
		log.ops = append(log.ops, hdrhistogram.New(hdrLowest, hdrHighest, hdrDigits))
	}
	base := series.Start.Unix() * 1000 // the header has whole seconds
	log.SetBaseTime(base)
	err := errors.Join(log.OutputLogFormatVersion(), log.OutputStartTime(base),
		log.OutputBaseTime(base), log.OutputLegend())
	if err != nil {
		return err
	}
	first, end := series.Window(from, series.End())
	begun := time.Duration(first) * series.Step
	for i := first; i < end; i++ {
		at := time.Duration(i) * series.Step
		if at-begun >= max(hdrLine, series.LatencyStep) {
			if err := log.line(begun, at); err != nil {
				return err
			}
			begun = at
		}
		if err := log.add(series.At(i).Ops); err != nil {
			return err
		}
	}
	return log.line(begun, time.Duration(end)*series.Step)
}

// add adds the latencies of an interval.
func (l *hdrLog) add(ops []record.Op) error {
	for k, op := range ops {
		for _, cell := range op.Latency {
			if err := l.ops[k].RecordValues(int64(cell.Highest()), int64(cell.Count)); err != nil {
				return err
			}
		}
	}
	return nil
}

// line writes what was added.
func (l *hdrLog) line(from, to time.Duration) error {
	for k, h := range l.ops {
		if h.TotalCount() == 0 {
			continue
		}
		h.SetTag(l.series.Ops[k])
		h.SetStartTimeMs(l.series.Start.Add(from).UnixMilli())
		h.SetEndTimeMs(l.series.Start.Add(to).UnixMilli())
		if err := l.OutputIntervalHistogram(h); err != nil {
			return err
		}
		h.Reset()
	}
	return nil
}

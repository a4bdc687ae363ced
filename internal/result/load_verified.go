package result

import "github.com/redquake/redquake/internal/record"

// Verified sets the verification from the ledger that was read back; nil = no ledger.
func (r *Load) Verified(l *record.Ledger) {
	if l == nil {
		return
	}
	v := &Verification{
		Acknowledged:   l.Acked,
		Failed:         l.Failed,
		Unknown:        l.Unknown,
		UnknownPresent: l.UnknownPresent,
		Replicas:       l.Replicas,
		ReplicaMissing: l.ReplicaMissing,
		Settings:       l.Settings,
		Unread:         l.Unknowable(),
	}
	if v.Unread == "" {
		v.SetLost(Count{AtLeast: l.LostAtLeast(), AtMost: l.Lost})
		v.FirstLost = Seconds(l.FirstLost)
		v.LastLost = Seconds(l.LastLost)
		v.Errors = l.Errors
	}
	if s := l.Stale; s != nil {
		v.Stale = &StaleReads{
			Reads:     s.Reads,
			Stale:     s.Stale,
			MaxWrites: s.MaxWrites,
			MaxBehind: Seconds(s.MaxBehind),
			Backwards: s.NonMonotonic + s.RolledBack,
		}
	}
	if d := l.Dual; d != nil {
		v.Dual = &DualPrimary{
			Writes: d.Writes,
			First:  Seconds(d.First),
			Last:   Seconds(d.Last),
		}
	}
	r.Verification = v
	r.Notes = append(r.Notes, l.Notes...)
	if note := l.EvictionNote(); v.Unread == "" && note != "" {
		r.Notes = append(r.Notes, note)
	}
}

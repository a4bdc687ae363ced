package plan

// Operation is one kind of request, with figures of its own in every record.
type Operation struct {
	Name     string
	Weight   int  // > 0, relative to the other operations
	ReadOnly bool // it changes nothing: it may go to a replica
}

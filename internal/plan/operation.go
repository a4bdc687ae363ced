package plan

// Operation is one kind of request, with separate figures in every record.
type Operation struct {
	Name     string
	Weight   int  // > 0, relative to the other operations
	ReadOnly bool // it may be sent to a replica
}

package problem

import "errors"

// From separates a Problem from other errors: one of the two results is nil, both are for a nil
// error.
func From(err error) (*Problem, error) {
	if found, ok := errors.AsType[*Problem](err); ok {
		return found, nil
	}
	return nil, err
}

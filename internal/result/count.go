package result

import "fmt"

// Count is a number with its lower and upper bound.
type Count struct{ AtLeast, AtMost uint64 }

// Exact returns the number if it is known exactly.
func (c Count) Exact() (uint64, bool) {
	return c.AtMost, c.AtLeast == c.AtMost
}

// String returns the number, such as 7, or its bounds, such as 3-7; "" if it is not known at all.
func (c *Count) String() string {
	if c == nil {
		return ""
	}
	if n, exact := c.Exact(); exact {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d-%d", c.AtLeast, c.AtMost)
}

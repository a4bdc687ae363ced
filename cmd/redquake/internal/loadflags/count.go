package loadflags

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// count is a flag with a whole number, which may be in thousands or millions: 10k, 2M.
type count[T int32 | int64] struct {
	to *T
}

// newCount sets the default, and returns the flag.
func newCount[T int32 | int64](to *T, value T) *count[T] {
	*to = value
	return &count[T]{to}
}

// cutFactor cuts thousands or millions off a number.
func cutFactor(text string) (number string, factor int64) {
	for suffix, n := range map[string]int64{"k": 1e3, "K": 1e3, "M": 1e6} {
		if number, ok := strings.CutSuffix(text, suffix); ok {
			return number, n
		}
	}
	return text, 1
}

// Set implements pflag.Value.
func (c *count[T]) Set(text string) error {
	text, factor := cutFactor(text)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return err
	}
	if product := n * factor; product/factor != n || int64(T(product)) != product {
		return errors.New("out of range")
	}
	*c.to = T(n * factor)
	return nil
}

// String implements pflag.Value.
func (c *count[T]) String() string {
	if c.to == nil {
		return ""
	}
	return strconv.FormatInt(int64(*c.to), 10)
}

// Type implements pflag.Value.
func (c *count[T]) Type() string {
	return fmt.Sprintf("%T", *new(T))
}

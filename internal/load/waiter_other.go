//go:build !linux

package load

func newWaiter() (waiter, error) { return newPortableWaiter(), nil }

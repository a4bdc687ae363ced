//go:build !linux

package engine

func newWaiter() (waiter, error) { return newPortableWaiter(func() {}), nil }

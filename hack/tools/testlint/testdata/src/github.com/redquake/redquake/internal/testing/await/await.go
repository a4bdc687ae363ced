// Package await stands in for the package of that path.
package await

import "time"

func Until(t any, what string, check func() error) {}

func Within(t any, limit time.Duration, what string, check func() error) {}

func Pass(d time.Duration, why string) {}

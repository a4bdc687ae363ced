package redisloadtest

import "time"

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC)

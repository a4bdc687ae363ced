package a

import "time"

// A file without a build tag may sleep: its tests are in virtual time.
func virtual() { time.Sleep(time.Second) }

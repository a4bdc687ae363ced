package main

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestForTime(t *testing.T) {
	for _, c := range []struct {
		args, want []string
		length     time.Duration
		wrong      bool
	}{
		{args: []string{"pause", "etcd"}, want: []string{"pause", "etcd"}},
		{args: []string{"pause", "etcd", "--for", "20s"}, want: []string{"pause", "etcd"}, length: 20 * time.Second},
		{args: []string{"pause", "etcd", "--for", "-1s"}, wrong: true},
		{args: []string{"pause", "etcd", "--for", "soon"}, wrong: true},
	} {
		got, length, err := forTime(c.args)
		if (err != nil) != c.wrong || !slices.Equal(got, c.want) || length != c.length {
			t.Errorf("%v: %v, %s, %v", c.args, got, length, err)
		}
	}
}

// What is done for a time is undone at its end, and also when the command is told to end earlier.
func TestPassing(t *testing.T) {
	for name, c := range map[string]struct {
		length, told, undone time.Duration // told: 0 = never; undone: 0 = never
		fails                bool
	}{
		"for ever":    {},
		"for a time":  {length: 20 * time.Second, undone: 20 * time.Second},
		"told to end": {length: 20 * time.Second, told: 5 * time.Second, undone: 5 * time.Second},
		"not done":    {length: 20 * time.Second, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.told > 0 {
					time.AfterFunc(c.told, cancel)
				}
				began, undone := time.Now(), time.Duration(0)
				err := passing(ctx, c.length, func() error {
					if c.fails {
						return errors.New("no such thing")
					}
					return nil
				}, func() error { undone = time.Since(began); return nil })
				if (err != nil) != c.fails || undone != c.undone {
					t.Errorf("undone after %s, want %s; %v", undone, c.undone, err)
				}
			})
		})
	}
}

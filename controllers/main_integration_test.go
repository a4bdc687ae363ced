//go:build integration

package controllers

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

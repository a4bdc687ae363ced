//go:build integration

package controllers

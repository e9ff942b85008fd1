//go:build tools

// Package earlier pins the controllers that tests/e2e/operators builds and starts.
package earlier

import (
	_ "github.com/ray-project/kuberay/ray-operator"
)

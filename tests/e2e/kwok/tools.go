//go:build tools

// Package kwok pins the kwok that tests/e2e builds and starts.
package kwok

import (
	_ "sigs.k8s.io/kwok/cmd/kwok"
)

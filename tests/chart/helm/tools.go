//go:build tools

// Package helm pins the helm that tests/chart builds and renders the chart with.
package helm

import (
	_ "helm.sh/helm/v3/cmd/helm"
)

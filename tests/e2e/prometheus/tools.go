//go:build tools

// Package prometheus pins the Prometheus that checks our rules and dashboards.
package prometheus

import (
	_ "github.com/prometheus/prometheus/cmd/prometheus"
	_ "github.com/prometheus/prometheus/cmd/promtool"
)

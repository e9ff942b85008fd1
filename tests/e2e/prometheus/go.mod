// The Prometheus and promtool that tests/monitoring and tests/e2e run.
module vramgate.dev/e2e/prometheus

go 1.26.7

require github.com/prometheus/prometheus v0.316.0

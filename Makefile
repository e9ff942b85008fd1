# `make demo` and `make test` are all the set-up a fresh machine needs (Python 3.11, Go, a C compiler).
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready
FRAMEWORKS := $(VENV)/.frameworks
PYTEST := $(RUN) -m tests.contained -m pytest
LOCK := --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --quiet \
        --python-version 3.11 --python-platform x86_64-manylinux_2_28

.PHONY: help setup demo test check unit unit-estimator unit-admission e2e e2e-controller e2e-cluster \
        e2e-chart built chart docs dashboards bench soak plans fix lock sbom audit clean

help: ## show the commands
	@grep -hE '^[a-z0-9]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(FRAMEWORKS) ## install everything into .venv; `make demo` does with PyTorch

$(READY): requirements/bootstrap.txt requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	@echo "setup: $(VENV) with the locked requirements (PyTorch's CUDA build is about 5 GB)"
	@test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt
	@$(VENV)/bin/uv pip install --python $(RUN) --compile-bytecode --require-hashes -r requirements/dev.txt
	@$(VENV)/bin/uv pip install --python $(RUN) --quiet --no-deps --no-build-isolation --editable .
	@touch $(READY)

$(FRAMEWORKS): $(READY) requirements/all.txt
	@echo "setup: $(VENV) with TensorFlow, JAX and XLA's compiler for GPUs (about 3 GB more)"
	@$(VENV)/bin/uv pip install --python $(RUN) --compile-bytecode --require-hashes -r requirements/all.txt
	@touch $(FRAMEWORKS)

demo: $(READY) ## start the webhook, send it the example jobs, show the verdicts
	@$(RUN) deploy/demo.py

test: $(FRAMEWORKS) ## everything CI runs, three parts at a time: end-to-end tests wait much
	@$(MAKE) --no-print-directory --output-sync=line --keep-going -j3 \
	  e2e-controller unit-estimator check e2e-cluster unit-admission e2e-chart

check: $(READY) ## lint, types, import contracts, Dockerfile
	@echo "check: ruff"; $(VENV)/bin/ruff check . && $(VENV)/bin/ruff format --check --quiet .
	@echo "check: mypy --strict"; $(VENV)/bin/mypy
	@echo "check: import contracts"; $(VENV)/bin/lint-imports
	@echo "check: Dockerfile"; $(VENV)/bin/hadolint Dockerfile

unit: unit-estimator unit-admission ## unit tests

unit-estimator: $(FRAMEWORKS)
	@$(PYTEST) -m "not e2e" tests/estimator tests/docs

unit-admission: $(FRAMEWORKS)
	@$(PYTEST) -m "not e2e" $(addprefix --ignore=tests/,estimator docs chart e2e load)

e2e: e2e-controller e2e-cluster e2e-chart ## the chart, and end-to-end tests on a real control plane (built on the first run, as are helm, kwok and other projects' controllers)

e2e-controller: built
	@$(PYTEST) tests/e2e/controller

e2e-cluster: built
	@$(PYTEST) tests/e2e tests/load $(addprefix --ignore=tests/e2e/,controller installed)

e2e-chart: built
	@$(PYTEST) tests/chart tests/e2e/installed

built: $(FRAMEWORKS)
	@$(RUN) -m tests.e2e.controlplane.build
	@$(RUN) -m tests.chart.helm.build
	@$(RUN) -m tests.e2e.kwok.build
	@$(RUN) -m tests.e2e.operators.build
	@$(RUN) -m tests.e2e.prometheus.build

chart: $(READY) ## write deploy/install.yaml from charts/vramgate, and the settings into its values.schema.json
	@$(RUN) -m tests.chart

docs: $(READY) ## build the pages of docs/ as a site in build/site
	@$(RUN) -m tools.programs_page
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict --quiet && echo "docs: build/site/index.html"

dashboards: $(READY) ## write the chart's dashboards and rules from deploy/monitoring
	@$(RUN) -m deploy.monitoring.dashboards

bench: $(FRAMEWORKS) ## measure docs/performance.md, write docs/accuracy.md and docs/reserved.md; exit 1 if a figure asked is not reached
	@$(RUN) -m tests.bench

soak: $(FRAMEWORKS) ## send a million reviews while things break, give each reader of others' bytes 100,000 hostile inputs, ask every query of the dashboards on a made-up week, and estimate every model of the zoos of PyTorch, TensorFlow and MXNet (hours)
	@$(RUN) -m tests.load --reviews 1000000 --seed 1
	@$(RUN) -m tests.fuzz --inputs 100000 --seed 1
	@$(RUN) -m tests.fuzz.estimates --specs 300 --seed 1
	@$(RUN) -m pytest -m sweep
	@VRAMGATE_KILLS=20 $(RUN) -m pytest tests/e2e/controller/deaths/test_kills.py
	@$(RUN) -m tests.bench.dashboards
	@$(RUN) -m tests.bench.catalog
	@$(RUN) -m tests.bench.zoo
	@$(RUN) -m tests.bench.zoo_frameworks

plans: $(READY) ## ask cuDNN 9.10.2 again for the plans that are shipped (minutes, 2 GB of disk)
	@$(RUN) -m tools.cudnn_plans

fix: $(READY) ## let ruff format and mend what it can
	@$(VENV)/bin/ruff format . && $(VENV)/bin/ruff check --fix .

lock: ## resolve the locked requirements again
	@$(VENV)/bin/uv pip compile requirements/bootstrap.in $(LOCK) -o requirements/bootstrap.txt
	@$(VENV)/bin/uv pip compile requirements/cudnn-9.10.2.in $(LOCK) -o requirements/cudnn-9.10.2.txt
	@$(VENV)/bin/uv pip compile requirements/mxnet-oracle.in $(LOCK) -o requirements/mxnet-oracle.txt
	@$(VENV)/bin/uv pip compile pyproject.toml --extra torch --extra tensorflow --extra jax --extra oracles \
	  --extra dev \
	  $(LOCK) -o requirements/all.txt
	@$(VENV)/bin/uv pip compile pyproject.toml --extra torch --extra dev $(LOCK) -c requirements/all.txt \
	  -o requirements/dev.txt
	@$(VENV)/bin/uv pip compile pyproject.toml $(LOCK) -c requirements/all.txt -o requirements/base.txt
	@$(VENV)/bin/uv pip compile requirements/build.in $(LOCK) -c requirements/all.txt -o requirements/build.txt
	@for extra in torch tensorflow jax frameworks; do \
	  $(VENV)/bin/uv pip compile pyproject.toml --extra $$extra $(LOCK) -c requirements/all.txt \
	    -o requirements/$$extra.txt; done

sbom: $(READY) ## write what each image installs to build/sbom/*.cdx.json (CycloneDX)
	@$(RUN) -m tools.bill_of_materials

audit: $(READY) ## ask PyPI for known vulnerabilities of what is pinned; exit 1 if there are some, 2 if not all could be asked
	@$(RUN) -m tools.audit

clean: ## remove .venv and caches of the tree
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

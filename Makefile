# `make demo` and `make test` are all the set-up a fresh machine needs (Python 3.11, Go, a C compiler).
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready
LOCK := --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --quiet \
        --python-version 3.11 --python-platform x86_64-manylinux_2_28

.PHONY: help setup demo test check unit e2e chart bench soak plans fix lock clean

help: ## show the commands
	@grep -hE '^[a-z0-9]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY) ## install everything into .venv

$(READY): requirements/bootstrap.txt requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	@echo "setup: $(VENV) with the locked requirements (PyTorch's CUDA build is about 5 GB)"
	@test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt
	@$(VENV)/bin/uv pip install --python $(RUN) --compile-bytecode --require-hashes -r requirements/dev.txt
	@$(VENV)/bin/uv pip install --python $(RUN) --quiet --no-deps --no-build-isolation --editable .
	@touch $(READY)

demo: $(READY) ## start the webhook, send it the example jobs, show the verdicts
	@$(RUN) deploy/demo.py

test: check unit e2e ## everything CI runs

check: $(READY) ## lint, types, import contracts, Dockerfile
	@echo "check: ruff"; $(VENV)/bin/ruff check . && $(VENV)/bin/ruff format --check --quiet .
	@echo "check: mypy --strict"; $(VENV)/bin/mypy
	@echo "check: import contracts"; $(VENV)/bin/lint-imports
	@echo "check: Dockerfile"; $(VENV)/bin/hadolint Dockerfile

unit: $(READY) ## unit tests
	@$(RUN) -m pytest -m "not e2e"

e2e: $(READY) ## the chart, and end-to-end tests on a real control plane (built on the first run, as is helm)
	@$(RUN) -m tests.e2e.controlplane.build
	@$(RUN) -m tests.chart.helm.build
	@$(RUN) -m pytest -m e2e tests/chart tests/e2e

chart: $(READY) ## write deploy/install.yaml from charts/vramgate, and the settings into its values.schema.json
	@$(RUN) -m tests.chart

bench: $(READY) ## measure docs/performance.md, write docs/accuracy.md and docs/reserved.md; exit 1 if a figure asked is not reached
	@$(RUN) -m tests.bench

soak: $(READY) ## estimate every model of torchvision, timm and transformers (half an hour)
	@$(RUN) -m tests.bench.zoo

plans: $(READY) ## ask cuDNN 9.10.2 again for the plans that are shipped (minutes, 2 GB of disk)
	@$(RUN) -m tools.cudnn_plans

fix: $(READY) ## let ruff format and mend what it can
	@$(VENV)/bin/ruff format . && $(VENV)/bin/ruff check --fix .

lock: ## resolve the locked requirements again
	@$(VENV)/bin/uv pip compile requirements/build.in $(LOCK) -c requirements/dev.txt -o requirements/build.txt
	@$(VENV)/bin/uv pip compile requirements/bootstrap.in $(LOCK) -o requirements/bootstrap.txt
	@$(VENV)/bin/uv pip compile requirements/cudnn-9.10.2.in $(LOCK) -o requirements/cudnn-9.10.2.txt
	@$(VENV)/bin/uv pip compile pyproject.toml --extra torch --extra dev $(LOCK) -o requirements/dev.txt
	@$(VENV)/bin/uv pip compile pyproject.toml $(LOCK) -c requirements/dev.txt -o requirements/base.txt
	@for extra in torch tensorflow jax; do \
	  $(VENV)/bin/uv pip compile pyproject.toml --extra $$extra $(LOCK) -c requirements/dev.txt \
	    -o requirements/$$extra.txt; done

clean: ## remove .venv and caches of the tree
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

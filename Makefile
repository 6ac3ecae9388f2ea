# Needs python3 (3.11 or newer) with venv, and make. Everything else goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What is installed follows pyproject.toml: another text, another stamp.
STAMP := $(VENV)/.installed-$(shell sha256sum pyproject.toml | cut -c1-16)
# The oldest compiler that the floors in pyproject.toml allow, apart from what the tests use.
GEN := .venv-gen
HALF := $(VENV)/.installing
TESTS ?= tests

.DEFAULT_GOAL := help
.PHONY: help demo demo-picture test test-cluster check fmt gen bench bench-cluster install

help: ## Show the targets
	@sed -n 's/^\([a-z-]*\):.*## /  \1\t/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(STAMP) ## A whole small node on this machine: resources, devices, pods, plugins
	@PATH="$(CURDIR)/$(BIN):$$PATH" dpctl lab run -- sh demo/tour.sh

demo-picture: $(STAMP) ## Draw docs/dashboard.svg, the README's picture, on the lab
	@mkdir -p docs
	@PATH="$(CURDIR)/$(BIN):$$PATH" COLUMNS=112 LINES=24 \
		dpctl lab run -- dpctl dashboard --screenshot docs/dashboard.svg

test: $(STAMP) ## Run the tests (TESTS=tests/inventory for some of them)
	@$(BIN)/python -m pytest -n auto -rs $(TESTS)

test-cluster: $(STAMP) ## Every command on real kubelets (MINOR=1.36 for one; needs root and Go)
	@$(BIN)/python -m pytest tests/cluster -p no:cacheprovider --durations=10 \
		-n $(if $(MINOR),$(words $(MINOR)),4) --max-worker-restart=0 $(MINOR:%=--minor %)

check: $(STAMP) ## Style, types, and which room imports what
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

fmt: $(STAMP) ## Format, and mend what can be mended
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

gen: $(STAMP) ## Write dpctl/pb, completions/, man/ and dpctl/_words.py anew
	@$(BIN)/python -m dpctl.gen
	@test -x $(GEN)/bin/python || $(PYTHON) -m venv $(GEN)
	@$(GEN)/bin/python -m pip install --quiet --disable-pip-version-check grpcio-tools==1.72.1
	@$(GEN)/bin/python proto/generate.py

bench: $(STAMP) ## Measure start-up times and a large node (some minutes, on a quiet machine)
	@$(BIN)/python -m compileall -q dpctl
	@$(BIN)/python -m bench.run

bench-cluster: $(STAMP) ## Change 1 000 Nodes of a real API server (needs root and Go; NODES=200)
	@$(BIN)/python -m bench.fleet $(if $(NODES),--nodes $(NODES))

install: $(STAMP) ## Only make .venv

# A virtual environment that a broken run left behind is thrown away, never used.
$(STAMP): pyproject.toml
	@if [ -e $(HALF) ] || ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
		$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
			|| { echo "dpctl needs Python 3.11 or newer: make PYTHON=python3.12" >&2; exit 1; }; \
		$(PYTHON) -m venv --clear $(VENV) || { rm -rf $(VENV); exit 1; }; \
	fi
	@rm -f $(VENV)/.installed-* && touch $(HALF)
	@echo "installing into $(VENV), about a minute" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dashboard,dev]'
	@$(BIN)/python -m compileall -q dpctl
	@rm -f $(HALF) && touch $@

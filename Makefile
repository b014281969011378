# `make help` lists the targets. They need only Python 3.11 or later and make.

VENV := .venv
PYTHON := $(VENV)/bin/python
KPREEMPT := $(VENV)/bin/kpreempt
# Installs exactly the packages in a lock file, with their hashes; nothing is resolved.
PIP_INSTALL := $(PYTHON) -m pip install --quiet --disable-pip-version-check
CONFORMANCE := ../shared/conformance
PYTEST_ARGS ?= --numprocesses auto --dist worksteal
BENCH_ARGS ?= --json docs/performance.json --plot docs/performance.svg

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all test-rest lint golden conformance bench bench-reference bench-live generated fuzz lock dist clean parity reference parity-all fidelity volcano-parity controllers-parity record live

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' Makefile

demo: $(VENV)/.runtime ## Install into .venv and explain a pod on the example cluster
	@$(KPREEMPT) explain -f fixtures/demo/api.yaml --snapshot fixtures/demo/cluster.yaml --now 2026-11-21T03:12:00Z

test: $(VENV)/.development ## Validate the checkout in a few minutes: unit tests, goldens, samples of the rest
	@$(PYTHON) -m pytest --tier quick $(PYTEST_ARGS)

test-all: $(VENV)/.development ## Run all tests (PYTEST_ARGS replaces the options of pytest)
	@$(PYTHON) -m pytest $(PYTEST_ARGS)

test-rest: $(VENV)/.development ## Run the tests that `make test` skips
	@$(PYTHON) -m pytest --tier rest $(PYTEST_ARGS)

lint: $(VENV)/.development ## Check format, types, import rules, language, commit messages and generated files
	@ignored=$$(git ls-files --cached --ignored --exclude-standard 2>/dev/null); \
		test -z "$$ignored" || { echo "committed although ignored by .gitignore: $$ignored" >&2; exit 1; }
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports
	@$(PYTHON) tools/structure.py --check
	@$(PYTHON) tools/request_path.py --max-path 20 --max-loaded 228 >/dev/null
	@$(PYTHON) tools/language.py --check
	@$(VENV)/bin/codespell kpreempt tools docs fixtures/golden* *.md
	@$(PYTHON) tools/check_commits.py
	@$(PYTHON) -m tests.generated --check

golden: $(VENV)/.development ## Rewrite the golden reports under fixtures/golden (read the diff)
	@$(PYTHON) -m tests.golden.rewrite

conformance: $(VENV)/.development ## Compare with the verdicts recorded from the real schedulers
	@$(PYTHON) $(CONFORMANCE)/check.py $(KPREEMPT) batch - -- $(sort $(wildcard $(CONFORMANCE)/kube-1.36/generated/*.jsonl $(CONFORMANCE)/legacy/*.jsonl $(CONFORMANCE)/volcano-1.8/*.jsonl))
	@$(PYTHON) $(CONFORMANCE)/check.py $(PYTHON) -m tests.conformance.drains - -- $(CONFORMANCE)/evictions/eviction.jsonl.gz $(CONFORMANCE)/evictions/drain-filter.jsonl.gz

bench: $(VENV)/.development ## Measure start-up, loading and writing of big clusters, and answers
	@$(PYTHON) -m benchmarks.startup
	@$(PYTHON) -m benchmarks.load
	@$(PYTHON) -m benchmarks.dump
	@$(PYTHON) -m benchmarks.decide --sizes 100,1000,5000
	@$(PYTHON) -m benchmarks.many
	@$(PYTHON) -m benchmarks.volcano
	@$(PYTHON) -m benchmarks.kueue
	@$(PYTHON) -m benchmarks.simulation
	@$(PYTHON) -m benchmarks.devices
	@$(PYTHON) -m benchmarks.check
	@$(PYTHON) -m benchmarks.recorder
	@$(PYTHON) -m benchmarks.fleet

bench-reference: $(VENV)/.development ## Compare answers with the real scheduler's code (needs Go)
	@$(PYTHON) -m benchmarks.decide --against-reference $(BENCH_ARGS)
	@$(PYTHON) -m benchmarks.bounds --write

bench-live: $(VENV)/.development ## Compare loading a live cluster with kubectl (needs Go and kubectl)
	@$(PYTHON) -m benchmarks.live

fuzz: $(VENV)/.development ## Run every command with N mutated inputs from SEED: no bug, no hang, no control character
	@$(PYTHON) -m tests.fuzz --cases $(N) --seed $(SEED)

generated: $(VENV)/.development ## Rewrite examples and help in README and docs, the completions and the JSON Schema
	@$(PYTHON) -m tests.generated

lock: $(VENV)/.development ## Resolve the dependencies again into the two lock files
	@$(VENV)/bin/uv pip compile --quiet --universal --generate-hashes --upgrade --python-version 3.11 \
		--custom-compile-command "make lock" --no-annotate --group build \
		--output-file requirements.lock pyproject.toml
	@$(VENV)/bin/uv pip compile --quiet --universal --generate-hashes --upgrade --python-version 3.11 \
		--custom-compile-command "make lock" --no-annotate --group build --group dev --extra fleet --extra mcp \
		--constraint requirements.lock --output-file requirements-dev.lock pyproject.toml

# The Python versions for which the single file has compiled modules; default: all in pyproject.toml.
PYTHONS ?=
# The URLs of the project and of its release files, for the Krew manifest.
HOMEPAGE ?=
RELEASE_URL ?= $(HOMEPAGE)/releases/download/v$(OWN_VERSION)
OWN_VERSION = $$(sed -n 's/^__version__ = "\(.*\)"/\1/p' kpreempt/version.py)

dist: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 1577836800)
dist: $(VENV)/.development ## Wheel, sdist and single file into dist/ (PYTHONS=3.12); the Krew manifest, too (HOMEPAGE=URL)
	@rm -rf dist
	@$(VENV)/bin/hatchling build --directory dist >/dev/null
	@$(PYTHON) tools/single_file.py dist/*.whl dist $(PYTHONS) >/dev/null
	@test -z "$(HOMEPAGE)" || $(PYTHON) tools/krew_manifest.py dist "$(HOMEPAGE)" "$(RELEASE_URL)"
	@ls -1 dist/*

clean: ## Remove .venv, caches and build output
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build

$(VENV)/.created:
	@./tools/create-venv $(VENV)
	@touch $@

$(VENV)/.runtime: $(VENV)/.created requirements.lock pyproject.toml
	@echo "Installing kpreempt into $(VENV) ..." >&2
	@$(PIP_INSTALL) --require-hashes --requirement requirements.lock
	@$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.development: $(VENV)/.runtime requirements-dev.lock
	@echo "Installing the tools for development into $(VENV) ..." >&2
	@$(PIP_INSTALL) --require-hashes --requirement requirements-dev.lock
	@touch $@

# The targets below need Go and the modules of tests/reference or tests/volcano_reference. The first build takes minutes.
N ?= 2000
SEED ?= 1
# A version of Kubernetes, such as 1.33; default: the latest version that has records.
VERSION =

reference: ## Build the real scheduler's code of VERSION as a program (in tests/reference/bin)
	@tests/reference/build $(if $(VERSION),--version $(VERSION)) tests/reference/bin$(if $(VERSION),/$(VERSION)) reference

parity: $(VENV)/.development ## Compare N random scenarios from SEED with the real scheduler's code of VERSION
	@$(PYTHON) -m tests.parity --examples $(N) --seed $(SEED) $(if $(VERSION),--version $(VERSION))
ifeq ($(VERSION),)
	@KPREEMPT_BUILD=1 $(PYTHON) -m pytest --quiet tests/parity/test_odds_of_reference.py tests/parity/test_cache_orders.py $(PYTEST_ARGS)
endif

parity-all: $(VENV)/.development ## The same with each version since 1.29
	@$(PYTHON) -m tests.parity --examples $(N) --seed $(SEED) --all-versions

fidelity: $(VENV)/.development ## Count the equal verdicts of each version again, for docs/fidelity.md
	@$(PYTHON) -m tests.parity.fidelity --examples $(N) --seed $(SEED)
	@$(PYTHON) -m tests.generated

volcano-parity: $(VENV)/.development ## Compare N random sessions from SEED with the genuine Volcano scheduler's code
	@$(PYTHON) -m tests.parity.volcano --examples $(N) --seed $(SEED)

controllers-parity: $(VENV)/.development ## Compare N random states per controller from SEED with the genuine controllers' code
	@$(PYTHON) -m tests.parity.controllers --examples $(N) --seed $(SEED)

record: $(VENV)/.development ## Record the verdicts under fixtures again from the real scheduler's code
	@$(PYTHON) -m tests.parity.record

# The tests of predictions. Reading and showing clusters is the same for each version.
LIVE = $(if $(VERSION),$(patsubst %,tests/live/test_%.py,live ties rollouts on_call),tests/live)

live: $(VENV)/.development ## Compare with a real scheduler on a test control plane of VERSION (SEED)
	@KPREEMPT_BUILD=1 KPREEMPT_LIVE_SEED=$(SEED) KPREEMPT_LIVE_VERSION=$(VERSION) \
		$(PYTHON) -m pytest $(LIVE) $(PYTEST_ARGS)

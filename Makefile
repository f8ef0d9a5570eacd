# The entry point for people and for CI. `make help` lists the targets.
#
# Everything is installed into .venv. Stamp files there record what has been done, so that
# a second run repeats nothing and needs no network.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMPS := $(VENV)/.stamps
# The last file that make_corpora.py writes.
CORPORA := .hotgrid/corpora/mixed.json
# One more than there are cores: tests of processes wait for them.
WORKERS := $(shell echo $$(( $$(nproc) + 1 )))
# A test that ends its worker is reported, not tried again.
PYTEST := $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0 --durations 10
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Images of containers often set it. Then every process compiles the sources again: 0.4 s for each
# that tests start, and 12 s for each worker that collects them.
unexport PYTHONDONTWRITEBYTECODE

# The editable install must be repeated when a package is added: a checksum of the list of
# packages is part of the stamp's name.
PACKAGES := $(shell find src -name __init__.py | LC_ALL=C sort | cksum | cut -d' ' -f1)
NATIVE   := CMakeLists.txt $(shell find native -name '*.?pp')

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow browser check docs bench corpora peers tokenpeers wheel sanitize setup clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: setup  ## Show what this machine has, then run the flow around a cylinder and measure it
	$(BIN)/hotgrid doctor
	$(BIN)/python examples/30_karman.py --out out

test: setup browser  ## Run every test that does not take minutes
	$(PYTEST) -m "not long"

test-slow: setup browser  ## Run the tests that take minutes: sanitizers, long fuzzing, full products
	$(PYTEST) -m long --timeout 2400 -o faulthandler_timeout=3660

# The live page is tested in a real browser; Playwright drives the one that is installed.
browser:  ## Install Chromium for the tests of the live page, where that is possible
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "installing Chromium for the tests of the live page"; \
	    { apt-get install -y --no-install-recommends chromium || { apt-get update && apt-get install -y --no-install-recommends chromium; }; } >/dev/null; \
	  else echo "the tests of the live page need Chromium: install it (Debian, Ubuntu: apt-get install chromium)"; fi; }

check: setup docs  ## Lint, types, import layers, docs
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/basedpyright

docs: setup  ## Build the docs strictly into site/
	$(BIN)/zensical build --clean --strict

bench: setup corpora  ## Run every benchmark; figures go to benchmarks/results/
	@for script in benchmarks/bench_*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

corpora: $(CORPORA)  ## Make the texts for bench_tokens.py from Debian packages (needs apt-get)

$(CORPORA): benchmarks/make_corpora.py | setup
	$(BIN)/python benchmarks/make_corpora.py

peers: setup  ## Install the libraries that benchmarks compare with, where they can be installed
	@grep -v '^#' benchmarks/requirements-peers.txt | while read -r peer; do \
	  echo "== $$peer"; $(BIN)/pip install --quiet --constraint constraints.txt \
	    --constraint benchmarks/requirements-peers.txt "$$peer" </dev/null || echo "$$peer does not install here"; done

tokenpeers: setup  ## Install the libraries that bench_tokens.py compares with, into their own environment
	$(PYTHON) -m venv $(VENV)/token-peers
	@grep -v '^#' benchmarks/requirements-token-peers.txt | while read -r peer; do \
	  echo "== $$peer"; $(VENV)/token-peers/bin/pip install --quiet --only-binary :all: \
	    "$$peer" numpy </dev/null || echo "$$peer does not install here"; done

wheel: setup  ## Build the wheel into dist/
	$(BIN)/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@ls -l dist

sanitize: setup  ## Run the native core under address, undefined and thread sanitizers
	$(BIN)/python native/tests/sanitize.py

setup: $(STAMPS)/package-$(PACKAGES)  ## Create .venv, install pinned versions, build the native core

clean:  ## Remove everything that make has created
	rm -rf $(VENV) build dist site out .hotgrid .hypothesis .pytest_cache .ruff_cache .import_linter_cache .cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Check for a compiler before downloading anything.
$(STAMPS)/python:
	@if [ -n "$$CXX" ]; then set -- $$CXX; command -v "$$1" >/dev/null || \
	  { echo "CXX=$$CXX names no compiler that is here; unset CXX or name one."; exit 1; }; \
	elif ! command -v c++ >/dev/null && ! command -v g++ >/dev/null && ! command -v clang++ >/dev/null; then \
	  echo "hotgrid's native core needs a C++20 compiler: install g++ (Debian, Ubuntu: apt-get install g++; Fedora: dnf install gcc-c++) and try again."; exit 1; fi
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "hotgrid needs Python 3.11 or newer; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || \
	  { echo "Python cannot make environments here; install its venv module (Debian, Ubuntu: apt-get install python3-venv) and try again."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/requirements: $(STAMPS)/python pyproject.toml constraints.txt
	$(BIN)/python -c 'import tomllib; d = tomllib.load(open("pyproject.toml", "rb")); print(*d["project"]["dependencies"], *sum(d["dependency-groups"].values(), []), sep="\n")' > $(STAMPS)/wanted.txt
	$(BIN)/pip install --quiet --constraint constraints.txt --requirement $(STAMPS)/wanted.txt
	@touch $@

$(STAMPS)/package-$(PACKAGES): $(STAMPS)/requirements $(NATIVE)
	$(BIN)/pip install --quiet --no-build-isolation --no-deps --editable .
	@rm -f $(STAMPS)/package-* && touch $@

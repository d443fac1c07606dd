PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
RUNS   := $(VENV)/.runs
COMPILED := $(VENV)/.tests-compiled
LOCK   := packaging/requirements-dev.txt
TOUR   := build/tour

# Packages without processes, threads or a store: what a change to them breaks is seen in seconds.
PURE   := $(wildcard $(addprefix tests/,text model expr timing decision jobfile lint))
# Their long comparisons with other libraries and with generated input are left to make test.
LONG   := $(wildcard $(addprefix tests/,timing/test_differential.py timing/test_oracle.py */test_fuzz.py))

LOWEST := tests/expr tests/jobfile tests/lint tests/cli/commands tests/lsp/test_server.py tests/tui/test_frames.py tests/storage tests/views

# The tests start a thousand programs and rewrite every assertion: what is compiled once stays compiled.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run unit test every-test coverage check style types format bench figures torture screenshots binary deb lowest docs clean

help:  ## list what can be made
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'

setup: $(STAMP)  ## build .venv with the pinned development environment (no-op when nothing changed)

# Choosing among all published files is most of what pip does, on one core: two of them halve the list, which names every
# package that is needed.
INSTALL := install --quiet --disable-pip-version-check --no-compile --no-deps --retries 10 --timeout 60

# pip would compile all libraries one after another. Here both cores do it, and half of the source is left out: libraries
# that are themselves built in C or serve a few tests are compiled in so far as they are imported.
UNCOMPILED := /(cronstable|holidays|mypy|mypyc|PyInstaller|_pyinstaller_hooks_contrib|pip|sentry_sdk|setuptools|sqlalchemy)/

define check_python
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
  || { echo "Chronex needs Python 3.11 or newer; try: make run PYTHON=python3.12"; exit 1; }
endef

$(STAMP): pyproject.toml $(LOCK)
	$(check_python)
	@echo "building $(VENV) with the development tools, once; this takes a minute or two"
	@$(PYTHON) -m venv --clear $(VENV)
	@awk -v first=$(VENV)/first.txt -v second=$(VENV)/second.txt '{ print > (NR % 2 ? first : second) }' $(LOCK)
	@$(BIN)/python -m pip $(INSTALL) -r $(VENV)/second.txt & $(BIN)/python -m pip $(INSTALL) -r $(VENV)/first.txt && wait $$!
	@$(BIN)/python -m pip check >$(VENV)/check.txt || { cat $(VENV)/check.txt; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -qq -j 0 -x '$(UNCOMPILED)' chronex chronex_tui store $(VENV)/lib || true
	@touch $(STAMP)

# What the product needs and nothing more, in the pinned versions; pip shows its progress.
$(RUNS): pyproject.toml $(LOCK)
	$(check_python)
	@echo "building $(VENV) with what Chronex needs, once; this takes some 20 seconds"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --disable-pip-version-check --constraint $(LOCK) --editable .
	@touch $(RUNS)

# A development environment that is there will do.
run: $(if $(wildcard $(STAMP)),$(STAMP),$(RUNS))  ## start Chronex on examples/tour.toml: the dashboard, or half a minute of headless without a terminal
	@if [ -t 0 ] && [ -t 1 ]; then exec $(BIN)/chronex run --config examples/tour.toml --store $(TOUR); \
	else $(BIN)/chronex run --headless --for 30s --config examples/tour.toml --store $(TOUR) \
	  && $(BIN)/chronex list --store $(TOUR); fi

unit: setup  ## the tests of the pure packages, for the edit loop
	@$(BIN)/python -m pytest -n 2 --folded $(addprefix --ignore=,$(LONG)) $(PURE)

check: style types  ## style, types, and the direction of imports
	@$(BIN)/python -m pytest tests/test_architecture.py

style: setup
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .

types: setup
	@$(BIN)/mypy --no-error-summary

# mypy uses one core: the tests begin beside it. What the tests start need not know of this make.
test: style  ## everything that must pass before a change lands
	@$(MAKE) --no-print-directory --jobs 2 types every-test

every-test: $(COMPILED)
	@MAKEFLAGS= $(BIN)/python -m pytest -n 4 --maxschedchunk 10 --folded --timeout 900 -m "not torture"  # of four workers about two are waiting

# Each worker would rewrite the assertions of all tests on a fresh clone; one that has done it leaves them to the others.
$(COMPILED): $(STAMP)
	@$(BIN)/python -m pytest --collect-only -qq > $@.log || { cat $@.log; exit 1; }
	@touch $@

coverage: setup  ## run the tests and print what they never reach; build/coverage/html has it line by line
	@rm -rf build/coverage && mkdir -p build/coverage
	@$(BIN)/python -m pytest -n 4 --maxschedchunk 10 --timeout 600 -m "not torture" --cov --cov-report=
	@$(BIN)/coverage html --quiet
	@$(BIN)/coverage report

torture: setup  ## long campaigns: every zone transition, long fuzzing, crash loops
	@$(BIN)/python -m pytest -n 2 --timeout 7200 -m torture

bench: setup  ## speed beside the peers, as ratios of one run
	@$(BIN)/python -m benchmarks

binary: setup  ## build dist/chronex (one file) and dist/chronex-dir (starts faster), and try both
	@$(BIN)/pyinstaller --noconfirm --clean --log-level ERROR --distpath dist --workpath build packaging/chronex.spec
	@CHRONEX_BINARY=dist/chronex $(BIN)/python -m pytest -n 2 -m binary tests/binary tests/cli tests/lsp
	@CHRONEX_BINARY=dist/chronex-dir/chronex $(BIN)/python -m pytest -n 2 -m binary tests/binary tests/cli tests/lsp
	@$(BIN)/python packaging/figures.py
	@if [ "$$(uname)" = Linux ]; then $(BIN)/python packaging/c_library.py dist/chronex-dir; fi

deb: binary  ## build/deb/chronex_*.deb of the directory form
	@mkdir -p build/deb
	@$(BIN)/python packaging/debian/build.py dist/chronex-dir build/deb

# A part of the tests that reaches into every dependency; the whole would take as long as make test.
lowest:  ## try the lowest version of every dependency, in an environment of its own
	@$(PYTHON) -m venv --clear build/lowest
	@$(PYTHON) packaging/lowest_versions.py > build/lowest/constraints.txt
	@build/lowest/bin/pip install --quiet --disable-pip-version-check -c build/lowest/constraints.txt -r packaging/requirements-tests.in ".[lsp,postgres,calendars,otlp,serve]"
	@build/lowest/bin/python -m pytest -n 2 -W ignore::DeprecationWarning $(LOWEST)

DOCS := build/docs-tools
docs: setup $(DOCS)/.ready  ## build the documentation site into build/site
	@$(BIN)/python packaging/docs_site.py
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict --quiet
	@echo "build/site/index.html"

$(DOCS)/.ready: packaging/requirements-docs.txt
	@$(PYTHON) -m venv --clear $(DOCS)
	@$(DOCS)/bin/pip install --quiet --disable-pip-version-check -r packaging/requirements-docs.txt
	@touch $@

screenshots: setup  ## take the pictures of the README anew
	@PYTHONPATH=. $(BIN)/python packaging/screenshots.py

figures: setup  ## run make bench and write its figures into docs/figures.md and the README
	@$(BIN)/python -m benchmarks --record

format: setup  ## rewrite the source in the project's style
	@$(BIN)/ruff check --quiet --fix .
	@$(BIN)/ruff format --quiet .

clean:  ## remove what was built
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .hypothesis

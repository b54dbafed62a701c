# Two commands: `make serve` and `make test`. Each sets up what it needs and may be run again at any time.
PYTHON ?= python3
UV := .tools/bin/uv
RUN := .venv/bin/
# Virtual environments know their own path and Python: a clone that moved, or another PYTHON, sets up anew.
PLACE := $(shell echo "$(CURDIR) $(PYTHON)" | cksum | cut -d ' ' -f 1)
READY := .venv/.ready-$(PLACE)
DEV := .venv/.ready-dev-$(PLACE)
TOOLS := .tools/.ready-$(PLACE)
YARDSTICKS := .yardsticks/.ready-$(PLACE)
ADAPTERS := .adapters/.ready-$(PLACE)
CHECKED := src tests benchmarks
# Take the certificates that the system trusts, and a cache of our own where the home cannot be written to.
export UV_SYSTEM_CERTS := true
export UV_NATIVE_TLS := true
ifneq ($(shell test -w "$(HOME)" && echo yes),yes)
export UV_CACHE_DIR := $(CURDIR)/.tools/cache
endif
# Containers often forbid it; then every process would compile all it imports again.
unexport PYTHONDONTWRITEBYTECODE
ifdef PORT
export RECOLLECT_PORT := $(PORT)
endif
ifdef SOURCES
export RECOLLECT_TEST_SOURCES := $(abspath $(SOURCES))
endif
# A short form of the long targets, to see that they run: make fuzz QUICK=1
ifdef QUICK
export RECOLLECT_BENCH_QUICK := 1
FUZZ_OPTIONS := --minutes 4 --cases 90
SOAK_OPTIONS := --seconds 30 --users 14
BENCH_OPTIONS := --out .tools/quick-benchmarks.md
LOCKS := .tools/
PICTURE_OPTIONS := --quick
FAST_OPTIONS := --collect-only
endif
# The extras that a server may need; each adapter has an extra of its own, with a framework behind it.
EXTRAS := llm onnx redis telemetry
COMPILE_ALL = $(UV) pip compile -q pyproject.toml --group build --universal --generate-hashes --no-header \
	--python-version 3.11
COMPILE = $(COMPILE_ALL) $(addprefix --extra ,$(EXTRAS))
# Two more than cores: tests of servers and of kills wait a good deal.
TEST_PROCESSES ?= 4
# For the inner loop: no processes but the database, no kills, one way of pooling, and not the slowest files.
FAST := tests/language tests/memory tests/flows tests/inference $(wildcard tests/test_*.py) -k "not transaction" \
	$(addprefix --ignore=tests/,test_benchmarks_page.py memory/test_bm25_in_the_database.py \
	$(addprefix inference/test_,llm_packages.py local_embedder.py wordpiece.py) \
	$(addprefix flows/test_,agreement.py condensed_memories.py context_window.py embedding_switch.py export_import.py \
	forget_users.py giants.py))

.DEFAULT_GOAL := help
.PHONY: help setup serve test test-fast conformance fuzz soak lint bench yardsticks adapters reference pictures wheel lock clean

help: ## Show these commands.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(DEV) ## Install everything into .venv, with the tools for tests.

serve: $(READY) ## Start the database and the server; PORT=8001 chooses another port.
	@$(RUN)recollect serve || [ $$? -eq 130 ]

test: lint ## Check the style, then run the whole suite.
	$(RUN)pytest -n $(TEST_PROCESSES) --dist worksteal -q

test-fast: $(DEV) ## Run what is quick, without a check of the style: for the inner loop.
	$(RUN)pytest -n 2 --dist worksteal -q $(FAST) $(FAST_OPTIONS)

conformance: $(DEV) ## Run the official MCP conformance suite.
	$(RUN)python -m tests.conformance

fuzz: $(DEV) ## Ask the REST door and the console strange questions, for ten minutes and more.
	$(RUN)python -m tests.fuzz $(FUZZ_OPTIONS)

soak: $(DEV) ## Ten minutes of every door at once, with faults.
	$(RUN)python -m tests.soak $(SOAK_OPTIONS)

lint: $(DEV) ## Run ruff, mypy (strict) and import-linter.
	$(RUN)ruff format --check $(CHECKED)
	$(RUN)ruff check $(CHECKED)
	$(RUN)mypy
	$(RUN)lint-imports

bench: $(DEV) ## Measure speed, as ratios in one run.
	$(RUN)python -m benchmarks $(BENCH_OPTIONS)

adapters: $(ADAPTERS) $(DEV) ## Run the makers' own tests against the adapters: ONLY=langgraph-store SOURCES=folder
	.adapters/bin/mypy --python-executable .adapters/bin/python $(shell find src/recollect/adapters -name '*.py')
	.adapters/bin/python -m tests.adapters $(ONLY)

yardsticks: $(if $(QUICK),$(DEV),$(YARDSTICKS)) ## Compare with other stores: CORPUS=file QUESTIONS=file
	$(if $(QUICK),$(RUN),.yardsticks/bin/)python -m benchmarks yardsticks $(CORPUS) $(QUESTIONS) $(BENCH_OPTIONS)

reference: $(DEV) ## Write docs/cli.md and docs/settings.md from the code.
	$(RUN)python -m tests.architecture.reference

pictures: $(DEV) ## Take a picture of every page of the console: FOLDER=folder
	$(RUN)python -m tests.console_pictures $(or $(FOLDER),.tools/pictures) $(PICTURE_OPTIONS)

wheel: $(READY) ## Build the package into dist/.
	$(RUN)python -m hatchling build -t wheel

lock: $(TOOLS) ## Resolve the dependencies again, after a change of pyproject.toml.
	$(COMPILE) -o $(LOCKS)requirements.lock
	$(COMPILE) --group dev -c $(LOCKS)requirements.lock -o $(LOCKS)requirements-dev.lock
	$(COMPILE) --group yardsticks -c $(LOCKS)requirements.lock -o $(LOCKS)requirements-yardsticks.lock
	$(COMPILE_ALL) --all-extras --group adapters -o $(LOCKS)requirements-adapters.lock

clean: ## Remove what set-up made. Your data stays.
	rm -rf .venv .tools .yardsticks .adapters .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

$(TOOLS): requirements-tools.lock
	@command -v $(PYTHON) >/dev/null || { echo "There is no $(PYTHON) here. Name a Python 3.11 or newer: make PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Recollect needs Python 3.11 or newer. Name one with: make PYTHON=python3.12 ..."; exit 1; }
	@echo "Setting up (once; this downloads packages) ..."
	@rm -rf .tools .venv
	@$(PYTHON) -m venv .tools
	@.tools/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-tools.lock
	@touch $@

# What runs, without tools. Installs and never removes, so that `make serve` after `make test` leaves the tools alone.
# Imports once what a server needs, so that its bytecode is there for processes that may not write it.
$(READY): requirements.lock pyproject.toml $(TOOLS)
	@echo "Installing Recollect into .venv ..."
	@$(UV) venv -q --allow-existing --python .tools/bin/python .venv
	@$(UV) pip install -q --python .venv/bin/python --require-hashes -r requirements.lock
	@$(UV) pip install -q --python .venv/bin/python --no-deps --no-build-isolation -e .
	@.venv/bin/python -m compileall -q src/recollect
	@.venv/bin/python -c "import onnxruntime, recollect.doors.cli.serving.mcp, recollect.doors.cli.serving.serve"
	@touch $@

$(DEV): requirements-dev.lock $(READY)
	@echo "Installing the tools for tests into .venv ..."
	@$(UV) pip install -q --python .venv/bin/python --require-hashes -r requirements-dev.lock
	@touch $@

# Other stores, with Recollect, so that nothing of theirs comes near what runs.
$(YARDSTICKS): requirements-yardsticks.lock pyproject.toml $(TOOLS)
	@echo "Installing the yardsticks into .yardsticks ..."
	@$(UV) venv -q --allow-existing --python .tools/bin/python .yardsticks
	@$(UV) pip install -q --python .yardsticks/bin/python --require-hashes -r requirements-yardsticks.lock
	@$(UV) pip install -q --python .yardsticks/bin/python --no-deps --no-build-isolation -e .
	@touch $@

# The frameworks whose interfaces the adapters have, with Recollect and what their makers' tests need.
$(ADAPTERS): requirements-adapters.lock pyproject.toml $(TOOLS)
	@echo "Installing the frameworks into .adapters ..."
	@$(UV) venv -q --allow-existing --python .tools/bin/python .adapters
	@$(UV) pip install -q --python .adapters/bin/python --require-hashes -r requirements-adapters.lock
	@$(UV) pip install -q --python .adapters/bin/python --no-deps --no-build-isolation -e .
	@touch $@

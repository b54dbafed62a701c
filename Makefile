# Two commands: `make serve` and `make test`. Each sets up what it needs and may be run again at any time.
PYTHON ?= python3
UV := .tools/bin/uv
RUN := .venv/bin/
READY := .venv/.ready
TOOLS := .tools/.ready
TEST_PROCESSES ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup serve test lint bench lock clean

help: ## Show these commands.
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Install everything into .venv.

serve: $(READY) ## Start the database and the server.
	@$(RUN)recollect serve

test: lint ## Check the style, then run the whole suite.
	$(RUN)pytest -n $(TEST_PROCESSES) -q

lint: $(READY) ## Run ruff, mypy (strict) and import-linter.
	$(RUN)ruff format --check .
	$(RUN)ruff check .
	$(RUN)mypy
	$(RUN)lint-imports

bench: $(READY) ## Measure speed, as ratios in one run.
	$(RUN)python -m benchmarks

lock: $(TOOLS) ## Resolve the dependencies again, after a change of pyproject.toml.
	$(UV) pip compile -q pyproject.toml --group dev --all-extras --universal --generate-hashes --no-header \
		--python-version 3.11 -o requirements.lock

clean: ## Remove what set-up made. Your data stays.
	rm -rf .venv .tools .mypy_cache .pytest_cache .ruff_cache .import_linter_cache

$(TOOLS): requirements-tools.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Recollect needs Python 3.11 or newer. Name one with: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -m venv .tools
	@.tools/bin/pip install -q --disable-pip-version-check --require-hashes -r requirements-tools.lock
	@touch $@

$(READY): requirements.lock pyproject.toml $(TOOLS)
	@$(UV) venv -q --allow-existing --python .tools/bin/python .venv
	@$(UV) pip sync -q --python .venv/bin/python --require-hashes requirements.lock
	@$(UV) pip install -q --python .venv/bin/python --no-deps --no-build-isolation -e .
	@touch $@

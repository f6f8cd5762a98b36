# opticoll: `make demo` and `make test` create the environment they need.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BUDGET ?= 10m
SEED   ?= 1
STAMP  := $(VENV)/.installed

SMOKE  := tests/solvers/adapters tests/solvers/test_stated_models.py tests/solvers/test_exact.py tests/solvers/test_cluster.py \
          tests/analysis/test_cli.py tests/analysis/test_model.py tests/analysis/study tests/analysis/store \
          tests/analysis/plots tests/instances

.PHONY: help demo test types quick setup bench versions soak readme lint lab notebooks docs lock clean
.DEFAULT_GOAL := help

help:            ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

demo: setup      ## certified all-to-all optima on sixteen topologies, with a report
	$(BIN)/opticoll study demo
	$(BIN)/opticoll report

test: setup      ## lint, type checks and all quick tests (about 8 minutes on two idle cores)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(MAKE) --no-print-directory -j 2 types quick

types: setup     ## type checks only
	$(BIN)/mypy

quick: setup     ## all quick tests only
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not slow"

bench: setup versions ## run the slow tests, then measure all tables and plots of README and docs/ (hours; resumes)
	$(BIN)/python -m pytest -m slow
	$(BIN)/python docs/documents.py

versions:        ## run the tests that use every dependency at its lowest and at its newest versions (needs uv)
	for which in lowest-direct highest; do \
	  uv venv --quiet --clear --python $(PYTHON) build/$$which && \
	  uv pip install --quiet --python build/$$which/bin/python --resolution $$which -r pyproject.toml --extra dev && \
	  uv pip install --quiet --python build/$$which/bin/python --no-deps --no-build-isolation -e . && \
	  build/$$which/bin/python -m pytest -m "not slow" -W ignore::DeprecationWarning $(SMOKE) || exit 1; \
	done

soak: setup      ## random kills, false reports, full disks, bad input (BUDGET=10m SEED=1); writes docs/reliability.md
	$(BIN)/python tests/soak.py --budget $(BUDGET) --seed $(SEED) --page docs/reliability.md

readme: setup    ## regenerate the tables and plots of README and docs/ from stored results (seconds)
	$(BIN)/python docs/documents.py --from-store

lint: setup      ## lint and type checks only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

lab: setup       ## open JupyterLab on notebooks/
	$(BIN)/opticoll lab

notebooks: setup ## execute the notebooks anew for the site (about five minutes on two idle cores)
	$(BIN)/python notebooks/execute.py

docs: setup      ## build the documentation in docs/_build, executing notebooks that changed; warnings are errors
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build

setup: $(STAMP)  ## create .venv with the locked dependencies

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "opticoll needs Python 3.11 or newer; run make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements.lock
	-$(BIN)/python -m compileall -qq -j 0 -x /tests/ $(VENV)/lib  # as pip would, but on all cores
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

lock:            ## resolve pyproject.toml into requirements.lock (needs uv)
	uv pip compile pyproject.toml --extra dev --extra docs --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header -o requirements.lock
	@{ echo "# Locked dependencies of opticoll and its development tools, for every platform and Python >= 3.11."; \
	   echo "# Made by \`make lock\` from pyproject.toml; \`make setup\` installs exactly this."; \
	   cat requirements.lock; } > requirements.lock.new && mv requirements.lock.new requirements.lock

clean:           ## remove the environment and caches (results stay)
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build *.egg-info

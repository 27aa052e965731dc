# The two commands a newcomer needs: `make demo`, `make test`. Everything is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test lint types unit test-slow browser bench clean
.DEFAULT_GOAL := help

help:
	@echo "make demo       fit an ensemble to a real table that comes with the package (about 2 minutes)"
	@echo "make test       lint, types and all tests except the slow ones (under 15 minutes on 2 cores)"
	@echo "make test-slow  the statistical and the long fault tests"
	@echo "make bench      the benchmarks whose figures are in the docs"

$(VENV)/.core: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[boost]'
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) -e '.[dev]'
	@touch $@

demo: $(VENV)/.core
	@rm -rf demo-run
	$(BIN)/cashmere demo --out demo-run

test: lint types unit

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

# Two processes, each with one thread for its arithmetic: small products wait longer for threads than they compute.
unit: $(VENV)/.dev browser
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow and not alone" -n 2 --dist loadfile
	$(BIN)/python -m pytest -m "alone and not slow"

test-slow: $(VENV)/.dev browser
	$(BIN)/python -m pytest -m slow --timeout 3600

# The report is tested in a real browser. Debian's chromium is installed when it is missing and we may do so.
browser:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium >/dev/null; } \
	  || echo "chromium is missing: the browser tests will be skipped"

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/suggestion_time.py
	$(BIN)/python benchmarks/ensemble_selection.py
	$(BIN)/python benchmarks/worker_utilisation.py

clean:
	rm -rf $(VENV) demo-run .mypy_cache .ruff_cache .pytest_cache

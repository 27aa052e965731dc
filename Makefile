# The two commands a newcomer needs: `make demo`, `make test`. Everything is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Where it is set, every worker process of a test compiles the package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test lint types unit test-long test-min test-python test-slow test-ray test-slurm site \
  release-check browser hooks lock nightly bench clean
.DEFAULT_GOAL := help

help:
	@echo "make demo       fit an ensemble to a real table that comes with the package (about 2 minutes)"
	@echo "make test       lint, types and the tests that run after every change (about a quarter of an hour on 2 cores)"
	@echo "make test-long  all other tests that take seconds: run them before a release (another quarter of an hour)"
	@echo "make test-slow  the statistical and the long fault tests"
	@echo "make test-min   the main tests with the lowest versions that pyproject.toml allows"
	@echo "make test-python PYTHON=python3.13   the main tests on another Python"
	@echo "make test-ray   trials on Ray; make test-slurm: on Debian's SLURM, which it installs (as root)"
	@echo "make site       the documentation with examples and API reference, in site/_build/html"
	@echo "make release-check  the site, and what is published in an empty environment (minutes)"
	@echo "make hooks      check each commit before it is made (pre-commit)"
	@echo "make lock       renew the versions in constraints.txt"
	@echo "make nightly    1000 faults during runs, 500 hostile trials, 50 fits in one process (hours)"
	@echo "make bench      the benchmarks whose figures are in the docs"

$(VENV)/.core: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[boost]'
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(PIP) --no-compile -e '.[dev]'
	@touch $@

# Apart from .venv, which cannot be made while pyproject.toml and constraints.txt contradict each other.
UV := .venv-uv/bin/uv
$(UV):
	$(PYTHON) -m venv .venv-uv
	.venv-uv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt uv

demo: $(VENV)/.core
	@rm -rf demo-run
	$(BIN)/cashmere demo --out demo-run

test: lint types unit

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python .ci/check_constraints.py

types: $(VENV)/.dev
	MYPY_NUM_WORKERS=2 $(BIN)/mypy

# Three processes, as a tenth of the time goes into waiting for other ones: 6 % faster than two on two cores. Each has
# one thread for its arithmetic: small products wait longer for threads than they compute.
unit: $(VENV)/.dev browser
	OMP_NUM_THREADS=1 .ci/in_memory $(BIN)/python -m pytest -m "not slow and not long and not alone" -n 3 --dist loadfile
	.ci/in_memory $(BIN)/python -m pytest -m "alone and not slow" $$(grep -rl --include="*.py" "mark.alone" tests)

test-long: $(VENV)/.dev browser
	OMP_NUM_THREADS=1 .ci/in_memory $(BIN)/python -m pytest -m "long and not slow and not alone" -n 3 --dist loadfile

# The lowest versions that pyproject.toml allows, on the lowest Python. With MIN_TESTS=tests the whole suite runs; golden
# trajectories are those of the versions in constraints.txt.
MIN_TESTS = tests/test_estimators.py tests/test_cli.py tests/data tests/records tests/space tests/costs tests/model \
  tests/storage tests/evaluation tests/ensembles tests/execution tests/study tests/strategies/test_strategy_names.py
test-min: $(UV)
	$(UV) venv --quiet --clear --python 3.11 .venv-min
	$(UV) pip install --quiet --python .venv-min --resolution lowest-direct -e '.[dev]'
	OMP_NUM_THREADS=1 .ci/in_memory .venv-min/bin/python -m pytest -m "not slow and not alone and not browser" -n 2 \
	  --dist loadfile $(MIN_TESTS)

# The same tests with the versions of constraints.txt on another Python: make test-python PYTHON=python3.13
test-python: $(UV)
	$(UV) venv --quiet --clear --python $(PYTHON) .venv-python
	$(UV) pip install --quiet --python .venv-python --constraint constraints.txt -e '.[dev]'
	OMP_NUM_THREADS=1 .ci/in_memory .venv-python/bin/python -m pytest -m "not slow and not alone and not browser" -n 2 \
	  --dist loadfile $(MIN_TESTS)

test-slow: $(VENV)/.dev browser
	$(BIN)/python -m pytest -m slow --timeout 3600

# Engines of clusters that the other tests do without, in an environment of their own.
CLUSTERS := .venv-clusters
$(CLUSTERS)/.done: $(UV) pyproject.toml constraints.txt
	$(UV) venv --quiet --clear --python 3.11 $(CLUSTERS)
	$(UV) pip install --quiet --python $(CLUSTERS) --constraint constraints.txt -e '.[dask,ray]' \
	  dask-jobqueue pytest pytest-timeout
	@touch $@

test-ray: $(CLUSTERS)/.done
	OMP_NUM_THREADS=1 $(CLUSTERS)/bin/python -m pytest tests/execution/test_ray_executor.py tests/execution/test_ray_address.py

test-slurm: $(CLUSTERS)/.done
	@command -v slurmctld >/dev/null || { apt-get update -qq && apt-get install -qq -y --no-install-recommends \
	  slurm-wlm >/dev/null; }
	$(CLUSTERS)/bin/python -m pytest tests/execution/test_slurm.py

# The documentation as a site, in site/_build/html; any warning is an error. Examples are executed once.
site: $(UV)
	$(UV) venv --quiet --allow-existing --python $(PYTHON) .venv-site
	$(UV) pip install --quiet --python .venv-site --constraint constraints.txt -e '.[docs,boost,dask,onnx]'
	.venv-site/bin/python site/build.py

# What `make test` has no time for: the site without a warning; wheel and sdist built, installed and tried elsewhere.
release-check: $(VENV)/.dev site
	$(BIN)/python -m pytest -m slow tests/packaging

# The report is tested in a real browser. Debian's chromium is installed when it is missing and we may do so.
browser:
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium >/dev/null; } \
	  || echo "chromium is missing: the browser tests will be skipped"

# Checks each commit before it is made.
hooks: $(VENV)/.dev
	$(BIN)/pre-commit install

# Renews constraints.txt: the newest versions, or with UPGRADE= only those that a change of pyproject.toml asks for.
# The libraries of accelerators are left out: PyTorch's own requirements pin them.
UPGRADE = --upgrade
lock: $(UV)
	$(UV) pip compile --quiet $(UPGRADE) --extra dev --python-version 3.11 --no-annotate --no-header \
	  pyproject.toml --output-file constraints.txt
	@sed -i -E -e '/^(cuda-|nvidia-|triton=)/d' \
	  -e '1i # Versions this package is tested with (Python 3.11): pip install -c constraints.txt cashmere-automl' \
	  -e '1i # Written by `make lock`.' constraints.txt

# Hours, at any time interrupted and continued: every fault is a row in .faults. Fails if anything promised was not kept.
NIGHTLY = nice -n 10 $(BIN)/python -m benchmarks faults
nightly: $(VENV)/.dev
	$(NIGHTLY) fits --times 50
	$(NIGHTLY) pairs --times 60
	$(NIGHTLY) trials --times 500
	$(NIGHTLY) kills --times 1000
	$(NIGHTLY) clusters --minutes 60
	$(NIGHTLY) tables --rows .faults

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.timings.suggestion_time
	$(BIN)/python -m benchmarks.timings.ensemble_selection
	$(BIN)/python -m benchmarks.timings.worker_utilisation

clean:
	rm -rf .venv* demo-run .mypy_cache .ruff_cache .pytest_cache

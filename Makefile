# Everything works in a fresh clone: each target makes .venv if it is missing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
KILLIAN := $(VENV)/.killian
PEERS := $(VENV)/.peers
COVERAGE := $(VENV)/.coverage
OUTPUT ?= out

# Bytecode is kept, whatever the environment says: else a node takes 4 s to start instead of 1.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo demo-scans demo-places demo-planner reproduce example-bag docs test compile-tests coverage \
	lint benchmark clean

demo: $(STAMP)
	$(BIN)/python -m kernel_constrained demo lidar --output $(OUTPUT)/lidar

demo-scans: $(STAMP) $(KILLIAN)
	$(BIN)/python -m kernel_constrained demo scans --output $(OUTPUT)/scans

demo-places: $(STAMP) $(KILLIAN)
	$(BIN)/python -m kernel_constrained demo places --output $(OUTPUT)/places

demo-planner: $(STAMP)
	$(BIN)/python -m kernel_constrained demo planner --output $(OUTPUT)/planner

# Every experiment of the papers: figures, and what they say beside what was measured.
reproduce: $(STAMP)
	$(BIN)/python -m kernel_constrained reproduce all --output $(OUTPUT)/reproduce

# Scans and poses of Killian Court, to replay and to try other tools on.
example-bag: $(OUTPUT)/example_bag

$(OUTPUT)/example_bag: | $(STAMP) $(KILLIAN)
	$(BIN)/python -m kernel_constrained convert killian $@

# The pages of doc/ as HTML; a warning is an error.
docs: $(STAMP)
	$(BIN)/sphinx-build -W --keep-going -b html doc $(OUTPUT)/doc

# More workers than cores: tests of nodes mostly wait. Each worker computes on one core.
WORKERS ?= 4
PYTEST := pytest --numprocesses $(WORKERS) --dist loadscope --no-loadscope-reorder

test: compile-learning compile-planning lint compile-tests $(KILLIAN)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m $(PYTEST) test

# Their bytecode, which each worker would make by itself. What cannot be imported the tests say.
compile-tests: $(STAMP)
	-@$(BIN)/python -m pytest --collect-only --quiet test > /dev/null

compile-%: $(STAMP)
	$(BIN)/python test/compiling.py $*

# Lines that tests run, package by package; first those of compiled functions, as plain Python.
COVER := $(BIN)/python -m coverage
PACKAGES := core perception planning bags data nodes offline

coverage: $(COVERAGE) $(KILLIAN)
	$(COVER) erase
	-NUMBA_DISABLE_JIT=1 PYTHONPATH=test $(COVER) run -m $(PYTEST) -p plain_python --quiet \
		test/core test/perception test/planning > $(VENV)/plain_python.log
	-OPENBLAS_NUM_THREADS=1 $(COVER) run -m $(PYTEST) test
	$(COVER) combine --quiet
	$(COVER) report
	@for package in $(PACKAGES); do printf '%-12s %s %%\n' $$package \
		"$$($(COVER) report --include="kernel_constrained/$$package/*" --format=total)"; done

benchmark: $(PEERS) $(KILLIAN)
	$(BIN)/python test/benchmark/cost_against_order.py --output $(OUTPUT)/benchmark
	$(BIN)/python test/benchmark/error_against_cost.py --output $(OUTPUT)/benchmark
	$(BIN)/python test/benchmark/filter_latency.py --output $(OUTPUT)/benchmark
	$(BIN)/python test/benchmark/filter_latency.py --profile
	$(BIN)/python test/benchmark/filter_soak.py
	$(BIN)/python test/benchmark/evaluate_speed.py
	$(BIN)/python test/benchmark/replay_rate.py --output $(OUTPUT)/benchmark
	$(BIN)/python test/benchmark/places.py --output $(OUTPUT)/benchmark
	$(BIN)/python test/benchmark/subquantile_online.py --output $(OUTPUT)/benchmark
	$(BIN)/python test/benchmark/planner_peers.py --output $(OUTPUT)/benchmark
	$(BIN)/python test/benchmark/planner_certificate.py --output $(OUTPUT)/benchmark
	$(BIN)/python test/benchmark/planner_closed_loop.py --output $(OUTPUT)/benchmark
	$(BIN)/python test/benchmark/planner_noise.py --output $(OUTPUT)/benchmark
	$(BIN)/python test/benchmark/subquantile_corrupted.py --output $(OUTPUT)/benchmark

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Bytecode is made as it is needed: in half the time, since most of what is installed never is.
$(STAMP): setup.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --no-compile --editable '.[ros,test]'
	touch $@

# The data file only: the package's own dependencies are not needed.
$(KILLIAN): $(STAMP)
	$(BIN)/python -m pip install --quiet --no-deps rtb-data==2.0.0
	touch $@

$(PEERS): $(STAMP)
	$(BIN)/python -m pip install --quiet --editable '.[benchmark]'
	touch $@

$(COVERAGE): $(STAMP)
	$(BIN)/python -m pip install --quiet --editable '.[coverage]'
	touch $@

clean:
	rm -rf $(VENV) build install log out *.egg-info

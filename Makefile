# One command each. `make demo` and `make test` need Python 3.11 or later and nothing else.
PYTHON ?= python3
VENV ?= .venv
RUN = $(VENV)/bin/

# Benchmark data and reference outputs are not part of the project; where they lie beside it, use them.
ifneq ($(wildcard ../shared/data),)
export CONSILIENCE_DATA ?= $(abspath ../shared/data)
endif
ifneq ($(wildcard ../shared/fixtures),)
export CONSILIENCE_FIXTURES ?= $(abspath ../shared/fixtures)
endif

.PHONY: help demo test test-floors test-scverse test-federated fuzz lint docs lists bench clean

help:
	@echo "make demo         set up and run the main job on built-in data"
	@echo "make test         set up and run all tests"
	@echo "make test-floors  all tests with Python 3.11 and the lowest versions that pyproject.toml allows"
	@echo "make test-scverse the tests of consilience.scverse, in an environment with anndata and mudata"
	@echo "make test-federated  the tests of merging between parties, on Flower, in an environment of its own"
	@echo "make fuzz         draw tables, damaged files and faults for an hour; EXAMPLES=500 SEED=1 for fewer, or again"
	@echo "make lint         ruff, mypy and the import contracts"
	@echo "make docs         the pages and the reference as a site, in docs/_build/html"
	@echo "make lists        write the lists of methods in README and docs from what the methods say"
	@echo "make bench        speed and memory, as ratios measured in one run"
	@echo "make clean        remove the environments and what was built"

$(VENV)/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "consilience needs Python 3.11 or later. Hint: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)")'
	$(PYTHON) -m venv $(VENV)
	$(RUN)python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(VENV)/.ready
	$(RUN)consilience demo demo-output

test: $(VENV)/.ready
	$(RUN)python -m pytest -n auto --dist worksteal

# pip has no way to ask for lowest versions; uv has, and brings Python 3.11 where there is none.
.venv-uv/bin/uv:
	$(PYTHON) -m venv .venv-uv
	.venv-uv/bin/python -m pip install --quiet --disable-pip-version-check uv

.venv-floors/.ready: pyproject.toml | .venv-uv/bin/uv
	.venv-uv/bin/uv venv --quiet --clear --python 3.11 .venv-floors
	.venv-uv/bin/uv pip install --quiet --python .venv-floors --resolution lowest-direct --editable '.[test]'
	@touch $@

test-floors: .venv-floors/.ready
	.venv-floors/bin/python -m pytest -n auto --dist worksteal

# anndata asks for a pandas before 3, which the other tests shall not be held to.
.venv-scverse/.ready: pyproject.toml
	$(PYTHON) -m venv .venv-scverse
	.venv-scverse/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[scverse]' 'pytest>=8'
	@touch $@

test-scverse: .venv-scverse/.ready
	.venv-scverse/bin/python -m pytest tests/scverse src/consilience/scverse

# Flower holds back typer, rich, packaging and protobuf, so it has an environment of its own.
.venv-federated/.ready: pyproject.toml | .venv-uv/bin/uv
	.venv-uv/bin/uv venv --quiet --clear --python $(PYTHON) .venv-federated
	.venv-uv/bin/uv pip install --quiet --python .venv-federated --editable '.[federated]' pytest pytest-xdist pandas
	@touch $@

test-federated: .venv-federated/.ready
	.venv-federated/bin/python -m pytest -n 2 tests/federated

# What each property has tried is printed at the end, and the seed at the start: SEED=... draws the same again.
SEED ?= $(shell date +%s)
EXAMPLES ?= 2000

fuzz: $(VENV)/.ready
	@echo "seed $(SEED), up to $(EXAMPLES) examples a property"
	CONSILIENCE_PROFILE=fuzz CONSILIENCE_EXAMPLES=$(EXAMPLES) $(RUN)python -m pytest tests/properties \
	  --hypothesis-seed=$(SEED) --hypothesis-show-statistics

lint: $(VENV)/.ready
	$(RUN)ruff check .
	$(RUN)ruff format --check .
	$(RUN)mypy
	$(RUN)lint-imports

docs: $(VENV)/.ready
	rm -rf docs/_build docs/api/generated
	$(RUN)sphinx-build --fail-on-warning --keep-going --quiet --jobs auto docs docs/_build/html
	@echo "docs/_build/html/index.html"

bench: $(VENV)/.ready
	$(RUN)python -m benchmarks.bench_pce

lists: $(VENV)/.ready
	$(RUN)python docs/lists.py

clean:
	rm -rf $(VENV) .venv-* demo-output docs/_build docs/api/generated
